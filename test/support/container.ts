/** Containers of runc, made from a folder of images as OCI lays them out. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Program, run } from "./program.ts";

interface Descriptor {
  readonly digest: string;
  /** Octets. */
  readonly size: number;
  readonly platform?: { readonly architecture: string };
}

export interface ImageConfiguration {
  readonly architecture: string;
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly WorkingDir: string;
    readonly Labels: Readonly<Record<string, string>>;
  };
}

interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

/** An image of one platform in a layout of several. */
export class LaidOutImage {
  readonly #folder: string;
  readonly #manifest: Manifest;
  readonly digest: string;

  constructor(folder: string, architecture: string) {
    this.#folder = folder;
    const { manifests }: { manifests: [Descriptor] } = JSON.parse(
      readFileSync(join(folder, "index.json"), "utf8"),
    );
    const index: { manifests: Descriptor[] } = JSON.parse(this.#read(manifests[0]));
    const found = index.manifests.find(({ platform }) => platform?.architecture === architecture);
    if (found === undefined) throw new Error(`no image for ${architecture}`);
    this.digest = found.digest;
    this.#manifest = JSON.parse(this.#read(found));
  }

  get configuration(): ImageConfiguration {
    return JSON.parse(this.#read(this.#manifest.config));
  }

  /** Octets of the layers, which are compressed. */
  get size(): number {
    return this.#manifest.layers.reduce((sum, { size }) => sum + size, 0);
  }

  /** Lays the layers over each other. */
  async unpack(folder: string): Promise<void> {
    mkdirSync(folder, { recursive: true });
    for (const layer of this.#manifest.layers) {
      const { code, errors } = await run("tar", [
        ...["--extract", "--zstd", "--no-same-owner", "--directory", folder],
        ...["--file", this.#blob(layer)],
      ]);
      if (code !== 0) throw new Error(errors);
    }
  }

  #blob({ digest }: Descriptor): string {
    return join(this.#folder, "blobs", digest.replace(":", "/"));
  }

  #read(descriptor: Descriptor): string {
    return readFileSync(this.#blob(descriptor), "utf8");
  }
}

/** What Kubernetes gives to a pod that opens port 53 itself. */
const CAPABILITIES = ["CAP_NET_BIND_SERVICE"];

/** A container with a network of its own, a root that cannot be written to, and one capability. */
export class Container implements AsyncDisposable {
  readonly #name: string;
  readonly #bundle: string;
  readonly program: Program;

  private constructor(name: string, bundle: string) {
    this.#name = name;
    this.#bundle = bundle;
    this.program = new Program("runc", [...this.#runc("run"), "--bundle", bundle, name]);
  }

  /**
   * @param rootfs the folder with the image's files
   * @param corefile is mounted as `/etc/coredns/Corefile`
   */
  static start(rootfs: string, { config }: ImageConfiguration, corefile: string): Container {
    const bundle = mkdtempSync(join(tmpdir(), "portolan-bundle-"));
    mkdirSync(join(bundle, "coredns"));
    writeFileSync(join(bundle, "coredns", "Corefile"), corefile);
    const [uid = 0, gid = 0] = config.User.split(":").map(Number);
    const specification = {
      ociVersion: "1.0.2",
      process: {
        user: { uid, gid },
        args: [...config.Entrypoint, "-conf", "/etc/coredns/Corefile"],
        env: config.Env,
        cwd: config.WorkingDir,
        capabilities: Object.fromEntries(
          ["bounding", "effective", "inheritable", "permitted", "ambient"].map((set) => [set, CAPABILITIES]),
        ),
        noNewPrivileges: true,
      },
      root: { path: rootfs, readonly: true },
      mounts: [
        { destination: "/proc", type: "proc", source: "proc" },
        { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755"] },
        {
          destination: "/etc/coredns",
          type: "bind",
          source: join(bundle, "coredns"),
          options: ["bind", "ro"],
        },
      ],
      linux: {
        namespaces: ["pid", "mount", "ipc", "uts", "network"].map((type) => ({ type })),
      },
    };
    writeFileSync(join(bundle, "config.json"), JSON.stringify(specification));
    return new Container(`portolan-test-${process.pid}`, bundle);
  }

  /** Runs a program of this machine in the container's network. */
  async inNetwork(...words: readonly string[]): Promise<string> {
    const { code, output, errors } = await run("nsenter", ["--net", "--target", await this.#pid(), ...words]);
    if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}:\n${output}${errors}`);
    return output;
  }

  /** Runs a program of the image in the container. */
  async exec(...words: readonly string[]): Promise<string> {
    const { code, output, errors } = await run("runc", [...this.#runc("exec"), this.#name, ...words]);
    if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}:\n${output}${errors}`);
    return output;
  }

  /** The lines of /proc/PID/status, by their names. */
  async status(): Promise<Record<string, string>> {
    const text = readFileSync(`/proc/${await this.#pid()}/status`, "utf8");
    return Object.fromEntries(
      text
        .trim()
        .split("\n")
        .map((line) => line.split(":\t"))
        .map(([name = "", value = ""]) => [name, value]),
    );
  }

  async #pid(): Promise<string> {
    const { output } = await run("runc", [...this.#runc("state"), this.#name]);
    const { pid }: { pid: number } = JSON.parse(output);
    return String(pid);
  }

  #runc(command: string): string[] {
    return ["--root", join(this.#bundle, "state"), command];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.program.hasEnded) await run("runc", [...this.#runc("kill"), this.#name, "KILL"]);
    await this.program.ended;
    await run("runc", [...this.#runc("delete"), "--force", this.#name]);
    await this.program[Symbol.asyncDispose]();
    rmSync(this.#bundle, { recursive: true, force: true });
  }
}
