// Measures what people take away, and writes the table into docs/operations.md: size, time from the start to the first answer, and memory.
//
//   npm run sizes [-- --from FOLDER] [--print]
//
// --from takes artefacts of this commit that are made already, as `npm run release` leaves them in release/. --print changes no page. Those
// for linux/amd64 are started here, so it needs such a machine, and root for the image.
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { arch, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Artefacts, VERSION } from "../test/support/artefacts.ts";
import { LaidOutImage } from "../test/support/container.ts";
import { exchangeUdp, queryOctets } from "../test/support/dns-client.ts";
import { freePort } from "../test/support/free-ports.ts";
import { projectRoot } from "../test/support/portolan.ts";
import { Program, run } from "../test/support/program.ts";
import { tableBetween } from "./lib/table-between.ts";

const PAGE = join(projectRoot, "docs", "operations.md");
const STARTS = 9;
const DEBIAN_VERSION = VERSION.replace("-dirty", "~dirty");
const NAME = "storefront.shop.svc.cluster.local.";
/** Milliseconds. */
const PATIENCE = 30_000;

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  /** The folder in which the program sees its Corefile, if that is not the one it is in. */
  readonly seen?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

interface Artefact {
  readonly name: string;
  /** For `npm run`. */
  readonly maker: string;
  /** What is taken away, in the folder of artefacts. */
  readonly file: string;
  /** Octets, where it is no single file for linux/amd64. */
  size?(made: string): number;
  /** @returns how to start it, the Corefile in `folder` */
  prepare(made: string, folder: string): Promise<Command>;
}

const ARTEFACTS: readonly Artefact[] = [
  {
    name: "npm package",
    maker: "npm",
    file: `portolan-${VERSION}.tgz`,
    async prepare(made, folder) {
      writeFileSync(join(folder, "package.json"), '{"private":true}');
      const words = ["install", "--no-audit", "--no-fund", "--prefer-offline"];
      await succeed("npm", ...words, "--prefix", folder, join(made, this.file));
      const launcher = join(folder, "node_modules", "portolan", "bin", "portolan");
      return { command: process.execPath, args: [launcher] };
    },
  },
  {
    name: "executable",
    maker: "executable",
    file: `portolan-${VERSION}-linux-x64`,
    async prepare(made, folder) {
      const environment = { XDG_CACHE_HOME: join(folder, "cache") };
      // The first start unpacks.
      await succeed(join(made, this.file), "-plugins");
      return { command: join(made, this.file), args: [], environment };
    },
  },
  {
    name: "image, in a chroot",
    maker: "image",
    file: `portolan-${VERSION}-image`,
    size(made) {
      return new LaidOutImage(join(made, this.file), "amd64").size;
    },
    async prepare(made, folder) {
      const image = new LaidOutImage(join(made, this.file), "amd64");
      const root = join(folder, "root");
      await image.unpack(root);
      cpSync(join(folder, "manifests"), join(root, "quickstart", "manifests"), { recursive: true });
      const { Entrypoint, Env } = image.configuration.config;
      const environment = Object.fromEntries(
        Env.map((each) => each.split(/=(.*)/s, 2)).filter(([name]) => name !== "PATH"),
      );
      // Node reads /proc. The mount is one of the program's own, and goes with it.
      const enter = 'mkdir -p "$0/proc" && mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"';
      return {
        command: "unshare",
        args: ["--mount", "sh", "-c", enter, root, ...Entrypoint],
        seen: "/quickstart",
        environment,
      };
    },
  },
  {
    name: "Debian package",
    maker: "packages",
    file: `portolan_${DEBIAN_VERSION}_amd64.deb`,
    async prepare(made, folder) {
      const root = join(folder, "root");
      await succeed("dpkg-deb", "--extract", join(made, this.file), root);
      const program = join(root, "usr", "lib", "portolan");
      return { command: join(program, "node"), args: [join(program, "bin", "portolan")] };
    },
  },
];

async function succeed(command: string, ...args: readonly string[]): Promise<void> {
  const { code, output, errors } = await run(command, args, { patience: 300_000 });
  if (code !== 0) throw new Error(`${command} ${args.join(" ")}: ${output}${errors}`);
}

/** Octets in memory of a process and those that it started. */
function residentOctets(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  const own = 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ").filter(Boolean);
  return children.reduce((sum, child) => sum + residentOctets(Number(child)), own);
}

interface Start {
  /** Milliseconds. */
  readonly toAnswer: number;
  /** Octets. */
  readonly memory: number;
}

async function measureStart({ command, args, seen, environment }: Command, folder: string): Promise<Start> {
  const port = await freePort();
  const here = seen ?? folder;
  const corefile = `.:${port} {
    bind 127.0.0.1
    kubernetes cluster.local {
        manifests ${here}/manifests
    }
    cache 30
}
`;
  const own = seen === undefined ? folder : join(folder, "root", seen);
  writeFileSync(join(own, "Corefile"), corefile);
  const began = performance.now();
  await using program = new Program(command, [...args, "-conf", `${here}/Corefile`], {
    cwd: folder,
    env: { PORTOLAN_COMMIT: "x", ...environment },
  });
  const query = queryOctets(NAME);
  while (performance.now() - began < PATIENCE) {
    const reply = await exchangeUdp({ address: "127.0.0.1", port }, query, 20);
    // The right address, and not an answer from before the manifests were read.
    if (reply === undefined || (reply[7] ?? 0) === 0) continue;
    return { toAnswer: performance.now() - began, memory: residentOctets(program.pid) };
  }
  throw new Error(`no answer from ${command}:\n${program.output}`);
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

/** An artefact in a folder of its own, ready to start. */
interface Prepared {
  readonly artefact: Artefact;
  readonly folder: string;
  readonly command: Command;
  readonly starts: Start[];
}

async function prepared(artefact: Artefact, made: string, folder: string): Promise<Prepared> {
  cpSync(join(projectRoot, "examples", "quickstart", "manifests"), join(folder, "manifests"), {
    recursive: true,
  });
  const command = await artefact.prepare(made, folder);
  // The first start reads everything from the disk.
  await measureStart(command, folder);
  return { artefact, folder, command, starts: [] };
}

function rowOf({ artefact, starts }: Prepared, made: string): string {
  const size = artefact.size?.(made) ?? statSync(join(made, artefact.file)).size;
  const milliseconds = Math.min(...starts.map(({ toAnswer }) => toAnswer));
  const memory = median(starts.map((start) => start.memory));
  return `| ${artefact.name} | ${(size / 1e6).toFixed(1)} | ${milliseconds.toFixed(0)} | ${(memory / 1e6).toFixed(0)} |`;
}

/** Starts them in turns, so that what else the machine does meets all of them. */
async function rowsOf(made: string): Promise<string[]> {
  const root = mkdtempSync(join(tmpdir(), "portolan-sizes-"));
  try {
    const all: Prepared[] = [];
    for (const artefact of ARTEFACTS)
      all.push(await prepared(artefact, made, mkdtempSync(join(root, "artefact-"))));
    for (let round = 0; round < STARTS; round++)
      for (const { command, folder, starts } of all) starts.push(await measureStart(command, folder));
    return all.map((each) => rowOf(each, made));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: { from: { type: "string" }, print: { type: "boolean", default: false } },
});
if (process.platform !== "linux" || arch() !== "x64")
  throw new Error("the artefacts that are started are for linux/amd64");

using own = new Artefacts();
if (values.from === undefined)
  for (const { maker } of ARTEFACTS) await own.make(maker, "--platform", "linux/amd64");
const rows = await rowsOf(values.from ?? own.folder);
console.log(rows.join("\n"));
const [processor] = cpus();
const table = [
  `Measured ${new Date().toISOString().slice(0, 10)} for version ${VERSION}, linux/amd64, on ${processor?.model.trim()} with ${cpus().length} cores: the shortest of ${STARTS} starts with the`,
  `cluster of the quickstart. The load average of the machine was ${loadavg()[0]?.toFixed(1)}; above ${cpus().length}, starts take longer.`,
  "",
  "| artefact | size, MB | start to first answer, ms | resident memory then, MB |",
  "|---|---:|---:|---:|",
  ...rows,
].join("\n");
if (!values.print) writeFileSync(PAGE, tableBetween(readFileSync(PAGE, "utf8"), "sizes", table));
