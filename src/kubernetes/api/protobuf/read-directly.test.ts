import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { encodeWatchFrame } from "../../../../test/support/kubernetes-api/protobuf.ts";
import { member, textMember } from "../../objects/json.ts";
import { isDnsLabel } from "../../objects/names.ts";
import { OLD_PUBLISH_ANNOTATION, type ReduceOptions } from "../../objects/reduce.ts";
import {
  IMPORT_NAME_LABEL,
  SERVICE_NAME_LABEL,
  SOURCE_CLUSTER_LABEL,
  TRIGGER_TIME,
} from "../../objects/reduce-endpoints.ts";
import { SharedValues } from "../../objects/shared-values.ts";
import { ApiContentError } from "../access/api-error.ts";
import { decodeEvent } from "../client/codec.ts";
import { asWanted, RESOURCES, type ResourcesOf } from "../client/resource.ts";
import { EventFrame } from "./read-event.ts";
import { TextPool } from "./text-pool.ts";

/** Nearly always a label. */
const label = fc.oneof(
  { weight: 20, arbitrary: fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/) },
  fc.constantFrom("", "Web", "-a", "a.b", "ä", "x".repeat(63), "x".repeat(64)),
);
const address = fc.oneof(
  { weight: 5, arbitrary: fc.ipV4() },
  fc.ipV6(),
  fc.constantFrom(
    "",
    "None",
    "host",
    "1.2.3",
    "1.2.3.",
    "01.2.3.4",
    "1.2.3.4.5",
    "1..2.3",
    "1.2.3.256",
    "0.0.0.0",
  ),
);
const map = (keys: readonly string[], value: fc.Arbitrary<string>) =>
  fc.uniqueArray(fc.tuple(fc.constantFrom(...keys, "app", "k".repeat(200)), value), {
    maxLength: 5,
    selector: ([key]) => key,
  });
const metadata = (labels: readonly string[], annotations: readonly string[]) =>
  fc
    .record(
      {
        name: label,
        generateName: label,
        namespace: label,
        uid: fc.string(),
        resourceVersion: fc.string(),
        labels: map(labels, label),
        annotations: map(annotations, fc.oneof(fc.constantFrom("true", "2026-01-01T00:00:00Z"), fc.string())),
        finalizers: fc.array(fc.string(), { maxLength: 2 }),
      },
      { requiredKeys: [] },
    )
    .map((made) => ({
      ...made,
      ...(made.labels && { labels: Object.fromEntries(made.labels) }),
      ...(made.annotations && { annotations: Object.fromEntries(made.annotations) }),
    }));
const ports = fc.array(
  fc.record(
    {
      name: fc.oneof(label, fc.constant("HTTP")),
      protocol: fc.constantFrom("TCP", "UDP", "SCTP", "tcp", "", "ICMP"),
      port: fc.oneof(fc.integer({ min: 1, max: 65_535 }), fc.constantFrom(0, -1, 65_536)),
      appProtocol: fc.string(),
    },
    { requiredKeys: [] },
  ),
  { maxLength: 4 },
);
const SLICE_LABELS = [SERVICE_NAME_LABEL, IMPORT_NAME_LABEL, SOURCE_CLUSTER_LABEL];
const slice = fc.record(
  {
    kind: fc.constant("EndpointSlice"),
    metadata: metadata(SLICE_LABELS, [TRIGGER_TIME]).map((made) => ({
      ...made,
      // Without it there is little to compare.
      labels: Object.assign({ [SERVICE_NAME_LABEL]: "web" }, made.labels),
    })),
    endpoints: fc.array(
      fc.record(
        {
          addresses: fc.array(address, { maxLength: 3 }),
          conditions: fc.record({ ready: fc.boolean(), serving: fc.boolean() }, { requiredKeys: [] }),
          hostname: label,
          targetRef: fc.record(
            { kind: fc.constantFrom("Pod", "", "Node"), namespace: label, name: label },
            { requiredKeys: [] },
          ),
          nodeName: label,
          zone: fc.constantFrom("", "zone-A", "zone-b"),
        },
        { requiredKeys: [] },
      ),
      { maxLength: 6 },
    ),
    ports,
    addressType: fc.constantFrom("IPv4", "IPv6", "FQDN", ""),
  },
  { requiredKeys: ["kind", "metadata"] },
);
const service = fc.record(
  {
    kind: fc.constant("Service"),
    metadata: metadata(["app"], [OLD_PUBLISH_ANNOTATION]),
    spec: fc.record(
      {
        ports,
        clusterIP: address,
        clusterIPs: fc.array(address, { maxLength: 3 }),
        type: fc.constantFrom("ClusterIP", "NodePort", "ExternalName", ""),
        externalName: fc.oneof(fc.domain(), fc.constantFrom("Example.ORG.", "10.0.0.1")),
        externalIPs: fc.array(address, { maxLength: 2 }),
        publishNotReadyAddresses: fc.boolean(),
        sessionAffinity: fc.string(),
      },
      { requiredKeys: [] },
    ),
    status: fc.record({ loadBalancer: fc.record({ ingress: fc.constant([{ ip: "192.0.2.1" }]) }) }),
  },
  { requiredKeys: ["kind"] },
);
const wishes = fc.record({ endpointPodNames: fc.boolean(), zones: fc.boolean() }, { requiredKeys: [] });

describe("an object of a watch that is read and reduced at once", () => {
  const kinds: readonly [
    kind: string,
    objects: fc.Arbitrary<{ readonly metadata?: object }>,
    resources: ResourcesOf<"endpoints"> | ResourcesOf<"services">,
  ][] = [
    ["EndpointSlice", slice, RESOURCES.endpoints],
    ["Service", service, RESOURCES.services],
  ];
  for (const [kind, objects, resources] of kinds)
    test(`is the same as in two steps, or left to them: ${kind}`, () => {
      let direct = 0;
      fc.assert(
        fc.property(objects, wishes, (object, wish) => {
          const found = inBothWays(object, wish, resources);
          if (found.read === undefined) {
            // Nothing but what is wrong is left to the two steps.
            assert.ok("problem" in found.expected);
            assert.deepEqual(found.left, found.expected);
            return;
          }
          direct++;
          assert.deepEqual({ object: found.read.object }, found.expected);
          const written = member(object, "metadata");
          assert.equal(found.read.revision, textMember(written, "resourceVersion"));
          const changedAt = textMember(member(written, "annotations"), TRIGGER_TIME);
          assert.equal(found.read.changedAt, kind === "Service" ? "" : changedAt);
        }),
      );
      assert.ok(direct > 20, `${direct}`);
    });

  test("is not a Service whose external addresses are wanted", () => {
    const [resource] = asWanted(RESOURCES.services, { shared: new SharedValues(), externalAddresses: true });
    assert.equal(resource.direct, undefined);
  });

  test("is an error where it breaks off, and leaves nothing behind for the next one", () => {
    const [resource] = asWanted(RESOURCES.endpoints, { shared: new SharedValues() });
    const whole = {
      kind: "EndpointSlice",
      metadata: { name: "web-1", namespace: "shop", labels: { [SERVICE_NAME_LABEL]: "web" } },
      endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: false } }, { addresses: ["10.0.0.2"] }],
      ports: [{ name: "http", protocol: "TCP", port: 80 }],
      addressType: "IPv4",
    };
    const frame = encodeWatchFrame("ADDED", whole).subarray(4);
    const event = new EventFrame(new TextPool());
    const expected = decodeEvent(frame, "protobuf", resource, event).read;
    assert.equal(expected?.object.groups[0]?.readyCount, 1);
    for (let length = 1; length < frame.length; length++) {
      try {
        decodeEvent(frame.subarray(0, length), "protobuf", resource, event);
      } catch (error) {
        assert.ok(error instanceof ApiContentError, `${error}`);
      }
      assert.deepEqual(decodeEvent(frame, "protobuf", resource, event).read, expected);
    }
  });

  test("has its metadata once: of what has it twice, the two steps make something", () => {
    const [resource] = asWanted(RESOURCES.services, { shared: new SharedValues() });
    const frame = encodeWatchFrame("ADDED", { kind: "Service", metadata: { name: "a", namespace: "b" } });
    const twice = withObjectTwice(frame.subarray(4));
    const { read, object } = decodeEvent(twice, "protobuf", resource);
    assert.equal(read, undefined);
    assert.equal(textMember(member(object, "metadata"), "name"), "a");
  });
});

test("what has gone comes with its name and revision alone", () => {
  const frame = encodeWatchFrame("DELETED", {
    kind: "Service",
    metadata: { name: "web", namespace: "shop", resourceVersion: "7", labels: { a: "b" } },
    spec: { clusterIP: "10.0.0.1" },
  });
  const { object, read } = decodeEvent(frame.subarray(4), "protobuf", RESOURCES.services[0]);
  assert.equal(read, undefined);
  assert.deepEqual(object, { metadata: { name: "web", namespace: "shop", resourceVersion: "7" } });
});

test("a label is what the API server takes for one", () => {
  const pattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
  const near = fc.string({ unit: fc.constantFrom(...Array.from("az09-A_.`{/:ä")), maxLength: 70 });
  fc.assert(
    fc.property(fc.oneof(near, label, fc.string()), (text) => isDnsLabel(text) === pattern.test(text)),
  );
});

function inBothWays(
  object: object,
  wish: Omit<ReduceOptions, "shared">,
  resources: ResourcesOf<"endpoints"> | ResourcesOf<"services">,
) {
  const options = { ...wish, shared: new SharedValues() };
  const frame = encodeWatchFrame("MODIFIED", { ...object }).subarray(4);
  // Narrowed to one kind, so that its reader and its function fit each other.
  const [resource] = asWanted(resources as ResourcesOf<"endpoints">, options);
  const { read, object: left } = decodeEvent(frame, "protobuf", resource);
  const { object: whole } = decodeEvent(frame, "protobuf", { ...resource, direct: undefined });
  return {
    read,
    left: left === undefined ? undefined : resource.reduce(left, options),
    expected: resource.reduce(whole, options),
  };
}

/** Puts the object's fields a second time behind the first: frames of less than 128 octets. */
function withObjectTwice(frame: Uint8Array): Uint8Array {
  // WatchEvent { type, object { raw: k8s\0 Unknown { typeMeta, raw } } }: each length grows by that of the object.
  const octets = [...frame];
  const type = 2 + (octets[1] ?? 0);
  const extension = type + 2;
  const unknown = extension + 2 + 4;
  const raw = unknown + 2 + (octets[unknown + 1] ?? 0);
  const length = octets[raw + 1] ?? 0;
  const object = octets.slice(raw + 2, raw + 2 + length);
  octets.splice(raw + 2 + length, 0, ...object);
  for (const at of [type + 1, extension + 1, raw + 1]) octets[at] = (octets[at] ?? 0) + length;
  assert.ok(octets.every((octet) => octet < 128));
  return Uint8Array.from(octets);
}
