/** Views that select pods by what `kubernetes` knows of the client, for names outside of the cluster. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { runPortolan } from "../support/portolan.ts";

/** Three server blocks: for gold pods of namespace a, for pods named b-*, and for all others. */
const CASES = `corefile: |
  .:53 {
      metadata
      view a {
          expr metadata('kubernetes/client-namespace') == 'a' and metadata('kubernetes/client-label/tier') == 'gold'
      }
      kubernetes cluster.local {
          pods verified
      }
      template IN A {
          answer "{{ .Name }} 5 IN A 192.0.2.1"
      }
  }
  .:53 {
      metadata
      view b {
          expr metadata('kubernetes/client-pod-name') startsWith 'b-'
      }
      kubernetes cluster.local {
          pods verified
      }
      template IN A {
          answer "{{ .Name }} 5 IN A 192.0.2.2"
      }
  }
  .:53 {
      template IN A {
          answer "{{ .Name }} 5 IN A 192.0.2.9"
      }
  }
fixtures:
  manifests: |
    { apiVersion: v1, kind: Namespace, metadata: { name: a } }
    ---
    { apiVersion: v1, kind: Namespace, metadata: { name: b } }
    ---
    { apiVersion: v1, kind: Pod, metadata: { name: a-1, namespace: a, labels: { tier: gold } }, status: { phase: Running, podIP: 10.0.0.1, podIPs: [{ ip: 10.0.0.1 }, { ip: "fd00::1" }] } }
    ---
    { apiVersion: v1, kind: Pod, metadata: { name: a-0, namespace: a, labels: { tier: gold } }, status: { phase: Succeeded, podIP: 10.0.0.2, podIPs: [{ ip: 10.0.0.2 }] } }
    ---
    { apiVersion: v1, kind: Pod, metadata: { name: b-1, namespace: b }, status: { phase: Running, podIP: 10.0.0.2, podIPs: [{ ip: 10.0.0.2 }] } }
    ---
    { apiVersion: v1, kind: Pod, metadata: { name: b-h, namespace: b }, spec: { hostNetwork: true }, status: { phase: Running, podIP: 10.0.0.7, podIPs: [{ ip: 10.0.0.7 }] } }
    ---
    { apiVersion: v1, kind: Pod, metadata: { name: a-h, namespace: a, labels: { tier: gold } }, spec: { hostNetwork: true }, status: { phase: Running, podIP: 10.0.0.8, podIPs: [{ ip: 10.0.0.8 }] } }
    ---
    { apiVersion: v1, kind: Pod, metadata: { name: b-x, namespace: b }, spec: { hostNetwork: true }, status: { phase: Running, podIP: 10.0.0.8, podIPs: [{ ip: 10.0.0.8 }] } }
cases:
  - { name: an IPv4 address, query: www.example.org A, from: 10.0.0.1, expect: { answer: www.example.org. A 192.0.2.1 } }
  - { name: an IPv6 address, query: www.example.org A, from: "fd00::1", expect: { answer: www.example.org. A 192.0.2.1 } }
  - { name: reused after a finished pod, query: www.example.org A, from: 10.0.0.2, expect: { answer: www.example.org. A 192.0.2.2 } }
  - { name: one pod on the host network, query: www.example.org A, from: 10.0.0.7, expect: { answer: www.example.org. A 192.0.2.2 } }
  - { name: two pods on the host network, query: www.example.org A, from: 10.0.0.8, expect: { answer: www.example.org. A 192.0.2.9 } }
  - { name: no pod, query: www.example.org A, from: 10.9.9.9, expect: { answer: www.example.org. A 192.0.2.9 } }
`;

test("a view takes the queries of its pods, whatever the family, the age and the network of their addresses", async (t) => {
  const cwd = makeTree(t, { "views.yaml": CASES });
  const { code, output, errors } = await runPortolan(["test", "views.yaml"], { cwd, env: { NO_COLOR: "1" } });
  assert.equal(code, 0, output + errors);
  assert.match(output, /^6 passed$/m);
});
