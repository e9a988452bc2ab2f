// Generates a TypeScript file beside each .proto file. With --check, writes nothing, and ends with 1 where the two do not fit.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, "node_modules", ".bin");

/** NAME.proto in a folder of `src/` becomes NAME-pb.ts. */
const SOURCES = [
  { folder: "kubernetes/api/protobuf", name: "kubernetes" },
  { folder: "etcd/client", name: "etcd" },
];

for (const { folder, name } of SOURCES) {
  const target = join(root, "src", folder, `${name}-pb.ts`);
  const made = format(target, generate(join(root, "src", folder), name));
  if (!process.argv.includes("--check")) writeFileSync(target, made);
  else if (readFileSync(target, "utf8") !== made) {
    console.log(`${target} is not what ${name}.proto gives: node scripts/generate-protobuf.ts`);
    process.exitCode = 1;
  }
}

function format(target: string, source: string): string {
  const args = [join(bin, "biome"), "check", "--write", `--stdin-file-path=${target}`];
  return execFileSync(process.execPath, args, { cwd: root, input: source, encoding: "utf8" });
}

function generate(folder: string, name: string): string {
  const out = mkdtempSync(join(tmpdir(), "portolan-protobuf-"));
  try {
    const template = {
      version: "v2",
      plugins: [
        {
          local: [process.execPath, join(bin, "protoc-gen-es")],
          out,
          opt: ["target=ts", "import_extension=ts"],
        },
      ],
    };
    const args = [join(bin, "buf"), "generate", folder, "--template", JSON.stringify(template)];
    execFileSync(process.execPath, args, { stdio: "inherit" });
    const text = readFileSync(join(out, `${name}_pb.ts`), "utf8");
    return `// Generated from ${name}.proto by scripts/generate-protobuf.ts: not to be changed by hand.\n${text}`;
  } finally {
    rmSync(out, { recursive: true });
  }
}
