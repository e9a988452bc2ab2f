/** The objects of the cluster in protobuf, with all that a real API server sends along and DNS has no use for. */
import {
  type ClusterSize,
  clusterAddress,
  nodeName,
  podAddress,
  podName,
  type ServiceShape,
  uid,
  zoneName,
} from "./cluster-shape.ts";
import { ProtobufWriter } from "./protobuf-writer.ts";

export interface ObjectType {
  readonly kind: string;
  readonly apiVersion: string;
  /** As in paths. */
  readonly plural: string;
}

/** What is told who watches. */
export interface ApiEvent {
  readonly event: "ADDED" | "MODIFIED" | "DELETED";
  readonly type: ObjectType;
  readonly revision: number;
  /** The object alone, without envelope. */
  readonly object: Uint8Array;
}

export const NAMESPACES: ObjectType = { kind: "Namespace", apiVersion: "v1", plural: "namespaces" };
export const SERVICES: ObjectType = { kind: "Service", apiVersion: "v1", plural: "services" };
export const PODS: ObjectType = { kind: "Pod", apiVersion: "v1", plural: "pods" };
export const SLICES: ObjectType = {
  kind: "EndpointSlice",
  apiVersion: "discovery.k8s.io/v1",
  plural: "endpointslices",
};

/** Unix time at which everything was made. */
const CREATED = 1_750_000_000;

interface Metadata {
  readonly name: string;
  readonly generateName?: string;
  readonly namespace: string;
  readonly uid: string;
  readonly revision: number;
  readonly labels: readonly (readonly [key: string, value: string])[];
  readonly annotations?: readonly (readonly [key: string, value: string])[];
  readonly owner?: {
    readonly kind: string;
    readonly apiVersion: string;
    readonly name: string;
    readonly uid: string;
  };
  readonly managedFields: Uint8Array;
}

/** One slice of a Service: numbers of pods. */
export interface SliceState {
  readonly service: ServiceShape;
  readonly index: number;
  readonly pods: readonly number[];
  /** One of {@link pods} that is not ready. */
  readonly notReady?: number | undefined;
}

/** Encodes each object as the message alone, as it stands in a list. */
export class ObjectEncoder {
  readonly #size: ClusterSize;
  readonly #writer = new ProtobufWriter();
  readonly #namespaceFields = managedFields("kubectl-create", "v1", NAMESPACE_FIELDS);
  readonly #serviceFields = managedFields("kubectl-client-side-apply", "v1", SERVICE_FIELDS);
  readonly #sliceFields = managedFields("kube-controller-manager", "discovery.k8s.io/v1", SLICE_FIELDS);
  readonly #podFields = Buffer.concat([
    managedFields("kube-controller-manager", "v1", POD_FIELDS),
    managedFields("kubelet", "v1", POD_STATUS_FIELDS),
  ]);
  readonly #podSpec = podSpec();

  constructor(size: ClusterSize) {
    this.#size = size;
  }

  namespace(name: string, index: number, revision: number): Buffer {
    this.#metadata({
      name,
      namespace: "",
      uid: uid(1, index),
      revision,
      labels: [
        ["kubernetes.io/metadata.name", name],
        ["pod-security.kubernetes.io/enforce", "baseline"],
      ],
      managedFields: this.#namespaceFields,
    });
    const writer = this.#writer;
    writer.message(2, () => writer.text(1, "kubernetes"));
    writer.message(3, () => writer.text(1, "Active"));
    return writer.take();
  }

  /** @param port what its port `http` has */
  service(service: ServiceShape, revision: number, port = 80): Buffer {
    const { name, namespace, index, isHeadless } = service;
    this.#metadata({
      name,
      namespace,
      uid: uid(2, index),
      revision,
      labels: appLabels(name),
      annotations: [["meta.helm.sh/release-name", name]],
      managedFields: this.#serviceFields,
    });
    const writer = this.#writer;
    const address = isHeadless ? "None" : clusterAddress(index);
    writer.message(2, () => {
      writer.message(1, () => this.#servicePort("http", port, "http"));
      writer.message(1, () => this.#servicePort("metrics", 9090, "metrics"));
      this.#entry(2, "app.kubernetes.io/name", name);
      writer.text(3, address);
      writer.text(4, "ClusterIP");
      writer.text(7, "None");
      writer.text(8, "");
      writer.text(10, "");
      writer.text(11, "");
      writer.integer(12, 0);
      writer.truth(13, false);
      writer.text(17, "SingleStack");
      writer.text(18, address);
      writer.text(19, "IPv4");
      writer.text(22, "Cluster");
    });
    writer.message(3, () => writer.message(1, () => undefined));
    return writer.take();
  }

  slice({ service, index, pods, notReady }: SliceState, revision: number): Buffer {
    const { name, namespace } = service;
    const writer = this.#writer;
    this.#metadata({
      name: `${name}-${sliceSuffix(index)}`,
      generateName: `${name}-`,
      namespace,
      uid: uid(3, service.index * 64 + index),
      revision,
      labels: [
        ...appLabels(name),
        ["endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"],
        ["kubernetes.io/service-name", name],
      ],
      annotations: [["endpoints.kubernetes.io/last-change-trigger-time", "2025-06-15T15:06:40Z"]],
      owner: { kind: "Service", apiVersion: "v1", name, uid: uid(2, service.index) },
      managedFields: this.#sliceFields,
    });
    for (const pod of pods) writer.message(2, () => this.#endpoint(service, pod, pod !== notReady));
    writer.message(3, () => this.#endpointPort("http", 8080));
    writer.message(3, () => this.#endpointPort("metrics", 9090));
    writer.text(4, "IPv4");
    return writer.take();
  }

  pod(service: ServiceShape, pod: number, revision: number): Buffer {
    const name = podName(service, pod);
    const writer = this.#writer;
    const set = name.slice(0, -6);
    this.#metadata({
      name,
      generateName: `${set}-`,
      namespace: service.namespace,
      uid: uid(4, pod),
      revision,
      labels: [...appLabels(service.name), ["pod-template-hash", set.slice(-10)]],
      annotations: [["kubernetes.io/config.seen", "2025-06-15T15:06:40.000000000Z"]],
      owner: { kind: "ReplicaSet", apiVersion: "apps/v1", name: set, uid: uid(5, service.index) },
      managedFields: this.#podFields,
    });
    const address = podAddress(pod);
    writer.message(2, () => {
      writer.raw(this.#podSpec);
      writer.text(10, nodeName(pod, this.#size.nodes));
    });
    writer.message(3, () => {
      writer.text(1, "Running");
      for (const condition of [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
      ])
        writer.message(2, () => {
          writer.text(1, condition);
          writer.text(2, "True");
          writer.message(4, () => writer.integer(1, CREATED));
          writer.text(5, "");
          writer.text(6, "");
        });
      writer.text(5, "10.0.0.17");
      writer.text(6, address);
      writer.message(7, () => writer.integer(1, CREATED));
      writer.text(9, "Burstable");
      writer.message(12, () => writer.text(1, address));
    });
    return writer.take();
  }

  #metadata(metadata: Metadata): void {
    const writer = this.#writer;
    writer.message(1, () => {
      writer.text(1, metadata.name);
      writer.text(2, metadata.generateName ?? "");
      writer.text(3, metadata.namespace);
      writer.text(4, "");
      writer.text(5, metadata.uid);
      writer.text(6, String(metadata.revision));
      writer.integer(7, 1);
      writer.message(8, () => {
        writer.integer(1, CREATED);
        writer.integer(2, 0);
      });
      for (const [key, value] of metadata.labels) this.#entry(11, key, value);
      for (const [key, value] of metadata.annotations ?? []) this.#entry(12, key, value);
      const { owner } = metadata;
      if (owner !== undefined)
        writer.message(13, () => {
          writer.text(1, owner.kind);
          writer.text(3, owner.name);
          writer.text(4, owner.uid);
          writer.text(5, owner.apiVersion);
          writer.truth(6, true);
          writer.truth(7, true);
        });
      writer.raw(metadata.managedFields);
    });
  }

  #endpoint(service: ServiceShape, pod: number, isReady: boolean): void {
    const writer = this.#writer;
    const zone = zoneName(pod, this.#size.nodes);
    writer.text(1, podAddress(pod));
    writer.message(2, () => {
      writer.truth(1, isReady);
      writer.truth(2, isReady);
      writer.truth(3, false);
    });
    writer.message(4, () => {
      writer.text(1, "Pod");
      writer.text(2, service.namespace);
      writer.text(3, podName(service, pod));
      writer.text(4, uid(4, pod));
      writer.text(5, "");
      writer.text(6, "");
      writer.text(7, "");
    });
    writer.text(6, nodeName(pod, this.#size.nodes));
    writer.text(7, zone);
    writer.message(8, () => writer.message(1, () => writer.text(1, zone)));
  }

  #endpointPort(name: string, port: number): void {
    this.#writer.text(1, name);
    this.#writer.text(2, "TCP");
    this.#writer.integer(3, port);
  }

  #servicePort(name: string, port: number, target: string): void {
    const writer = this.#writer;
    writer.text(1, name);
    writer.text(2, "TCP");
    writer.integer(3, port);
    writer.message(4, () => {
      writer.integer(1, 1);
      writer.integer(2, 0);
      writer.text(3, target);
    });
    writer.integer(5, 0);
  }

  #entry(number: number, key: string, value: string): void {
    const writer = this.#writer;
    writer.message(number, () => {
      writer.text(1, key);
      writer.text(2, value);
    });
  }
}

function sliceSuffix(index: number): string {
  return `${"bcdfghjklm"[index % 10]}${"npqrstvwxz"[Math.floor(index / 10) % 10]}k7x`;
}

function appLabels(name: string): [key: string, value: string][] {
  return [
    ["app.kubernetes.io/name", name],
    ["app.kubernetes.io/managed-by", "Helm"],
    ["helm.sh/chart", "microservice-4.2.0"],
  ];
}

/** Field 17 of the metadata. */
function managedFields(manager: string, apiVersion: string, fields: string): Buffer {
  const writer = new ProtobufWriter();
  writer.message(17, () => {
    writer.text(1, manager);
    writer.text(2, "Update");
    writer.text(3, apiVersion);
    writer.message(4, () => {
      writer.integer(1, CREATED);
      writer.integer(2, 0);
    });
    writer.text(6, "FieldsV1");
    writer.message(7, () => writer.text(1, fields));
    writer.text(8, "");
  });
  return writer.take();
}

/** A container with its environment, probes and volumes, as 1.5 kB of padding that no reader here decodes. */
function podSpec(): Buffer {
  const writer = new ProtobufWriter();
  writer.message(2, () => {
    writer.text(1, "main");
    writer.text(2, "registry.example/platform/microservice@sha256:5f70bf18a086007016e948b04aed3b82");
    for (let at = 0; at < 24; at++)
      writer.message(7, () => {
        writer.text(1, `SETTING_NUMBER_${at}`);
        writer.text(2, `the value of setting number ${at}`);
      });
  });
  writer.text(3, "Always");
  writer.integer(4, 30);
  writer.text(6, "ClusterFirst");
  return writer.take();
}

const NAMESPACE_FIELDS = `{"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}}`;
const SERVICE_FIELDS = `{"f:metadata":{"f:annotations":{".":{},"f:meta.helm.sh/release-name":{}},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:helm.sh/chart":{}}},"f:spec":{"f:internalTrafficPolicy":{},"f:ports":{".":{},"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{},"f:targetPort":{}},"k:{\\"port\\":9090,\\"protocol\\":\\"TCP\\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{},"f:targetPort":{}}},"f:selector":{},"f:sessionAffinity":{},"f:type":{}}}`;
const SLICE_FIELDS = `{"f:addressType":{},"f:endpoints":{},"f:metadata":{"f:annotations":{".":{},"f:endpoints.kubernetes.io/last-change-trigger-time":{}},"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:endpointslice.kubernetes.io/managed-by":{},"f:helm.sh/chart":{},"f:kubernetes.io/service-name":{}},"f:ownerReferences":{".":{},"k:{\\"uid\\":\\"3f2a0002-7c1d-4e5b-9a60-000000000000\\"}":{}}},"f:ports":{}}`;
const POD_FIELDS = `{"f:metadata":{"f:annotations":{".":{},"f:kubernetes.io/config.seen":{}},"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:helm.sh/chart":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{}}},"f:spec":{"f:containers":{"k:{\\"name\\":\\"main\\"}":{".":{},"f:env":{},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{},"f:name":{},"f:ports":{},"f:readinessProbe":{},"f:resources":{}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}`;
const POD_STATUS_FIELDS = `{"f:status":{"f:conditions":{"k:{\\"type\\":\\"ContainersReady\\"}":{".":{},"f:lastProbeTime":{},"f:status":{},"f:type":{}},"k:{\\"type\\":\\"Initialized\\"}":{".":{},"f:status":{}},"k:{\\"type\\":\\"Ready\\"}":{".":{},"f:status":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{},"f:startTime":{}}}`;
