/** The environment of the Corefile reader: files for `import`, and environment variables. */
export interface CorefileHost {
  readFile(path: string): FileContent;
  /** Names of the entries of a directory in any order; `undefined` if the directory does not exist or cannot be read. */
  list(directory: string): readonly string[] | undefined;
  /** Value of an environment variable; `undefined` if it is not set. */
  environmentVariable(name: string): string | undefined;
}

export type FileContent =
  | {
      readonly kind: "text";
      readonly text: string;
      /** Name of the text in places, if not the path. Its imports are relative to the folder of this name. */
      readonly name?: string;
    }
  | { readonly kind: "missing" }
  | { readonly kind: "directory" }
  | { readonly kind: "unreadable"; readonly reason: string };

/** Why there is no text, as in "is a directory". */
export function describeNoText(content: Exclude<FileContent, { kind: "text" }>): string {
  switch (content.kind) {
    case "missing":
      return "no such file";
    case "directory":
      return "is a directory";
    case "unreadable":
      return content.reason;
  }
}

export interface MemoryHostContent {
  /** Text by path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
}

/** A host for text outside of a file system: a ConfigMap in an admission review, an editor's buffers, a test. */
export function memoryHost(content: MemoryHostContent = {}): CorefileHost {
  const files = new Map(Object.entries(content.files ?? {}));
  const environment = new Map(Object.entries(content.environment ?? {}));
  const list = (directory: string): string[] | undefined => {
    const prefix = directory === "." ? "" : `${directory.replace(/\/$/, "")}/`;
    const names = new Set<string>();
    for (const path of files.keys()) {
      if (!path.startsWith(prefix)) continue;
      const [name = ""] = path.slice(prefix.length).split("/");
      if (name !== "") names.add(name);
    }
    return names.size === 0 ? undefined : [...names];
  };
  return {
    readFile(path) {
      const text = files.get(path);
      if (text !== undefined) return { kind: "text", text };
      return list(path) === undefined ? { kind: "missing" } : { kind: "directory" };
    },
    list,
    environmentVariable: (name) => environment.get(name),
  };
}
