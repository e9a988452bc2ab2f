/** The messages of the benchmark's API: lists, events and failures, in protobuf. */
import type { ObjectType } from "./api-objects.ts";
import { ProtobufWriter } from "./protobuf-writer.ts";

const PREFIX = Buffer.from("k8s\0", "latin1");
const writer = () => new ProtobufWriter();

/** @param continueToken empty on the last page */
export function encodeList(
  { kind, apiVersion }: ObjectType,
  objects: Iterable<Uint8Array>,
  page: { readonly revision: number; readonly continueToken: string; readonly remaining: number },
): Buffer {
  const list = writer();
  list.message(1, () => {
    list.text(1, "");
    list.text(2, String(page.revision));
    list.text(3, page.continueToken);
    if (page.remaining > 0) list.integer(4, page.remaining);
  });
  for (const object of objects) list.bytes(2, object);
  return envelope(`${kind}List`, apiVersion, list.take());
}

/** A frame of a watch. */
export class EventEncoder {
  readonly #writer = writer();

  /** @param object as it stands in a list */
  encode(event: string, { kind, apiVersion }: Omit<ObjectType, "plural">, object: Uint8Array): Buffer {
    const out = this.#writer;
    out.text(1, event);
    out.message(2, () =>
      out.message(1, () => {
        out.raw(PREFIX);
        out.message(1, () => {
          out.text(1, apiVersion);
          out.text(2, kind);
        });
        out.bytes(2, object);
        out.text(3, "");
        out.text(4, "");
      }),
    );
    const message = out.take();
    const length = Buffer.alloc(4);
    length.writeUInt32BE(message.length);
    return Buffer.concat([length, message]);
  }

  bookmark(type: ObjectType, revision: number, endsList: boolean): Buffer {
    const object = writer();
    object.message(1, () => {
      object.text(1, "");
      object.text(6, String(revision));
      if (endsList)
        object.message(12, () => {
          object.text(1, "k8s.io/initial-events-end");
          object.text(2, "true");
        });
    });
    return this.encode("BOOKMARK", type, object.take());
  }

  /** 410: the revision is forgotten. */
  expired(): Buffer {
    return this.encode("ERROR", { kind: "Status", apiVersion: "v1" }, expiredStatus());
  }
}

/** The same as an answer. */
export function encodeExpired(): Buffer {
  return envelope("Status", "v1", expiredStatus());
}

function expiredStatus(): Buffer {
  const status = writer();
  status.message(1, () => undefined);
  status.text(2, "Failure");
  status.text(3, "too old resource version");
  status.text(4, "Expired");
  status.integer(6, 410);
  return status.take();
}

function envelope(kind: string, apiVersion: string, raw: Uint8Array): Buffer {
  const out = writer();
  out.raw(PREFIX);
  out.message(1, () => {
    out.text(1, apiVersion);
    out.text(2, kind);
  });
  out.bytes(2, raw);
  out.text(3, "");
  out.text(4, "");
  return out.take();
}
