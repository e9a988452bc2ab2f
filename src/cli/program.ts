/** The program: reads the command line, runs the server or a command, and returns the exit code. */
import { nearestWord } from "../lib/text/nearest-word.ts";
import { PluginListError, type PluginRegistry } from "../server/configuration/plugin-registry.ts";
import { banner } from "./banner.ts";
import { COMMANDS } from "./commands.ts";
import { corefilePath } from "./corefile-source.ts";
import { FlagError } from "./flag-table.ts";
import { parseServerFlags, type ServerFlags, usage } from "./flags.ts";
import { lastWords } from "./last-words.ts";
import { completeRegistry, pluginLines, pluginRegistry } from "./plugin-list.ts";
import { Printing } from "./printing.ts";

function unknownCommand(word: string): string {
  if (word === "version") return 'there is no command "version"; did you mean "portolan -version"?';
  if (word === "serve" || word === "run" || word === "start")
    return `there is no command "${word}"; "portolan -conf Corefile" serves`;
  const near = nearestWord(
    word,
    COMMANDS.map(({ name }) => name),
  );
  const hint = near === undefined ? '"portolan help" lists all' : `did you mean "portolan ${near}"?`;
  return `there is no command ${JSON.stringify(word)}; ${hint}`;
}

/** Runs the program to its end. @returns the exit code (docs/spec/coredns-behaviour.md#signals) */
export async function runProgram(argv: readonly string[]): Promise<number> {
  const printing = new Printing(process.stdout, process.stderr);
  const [word = "", ...others] = argv;
  const entry = COMMANDS.find(({ name }) => name === word);
  if (entry !== undefined) {
    const command = await entry.load();
    const code = await command(others, COMMANDS);
    // Exits at once: a command leaves nothing to wait for, and tearing down its heap takes noticeable time.
    process.exit(await printing.end(code));
  }
  if (/^[a-z]/i.test(word)) {
    process.stderr.write(`${unknownCommand(word)}\n`);
    return 2;
  }
  let flags: ServerFlags;
  try {
    flags = parseServerFlags(argv);
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    process.stderr.write(`${error.message}\n${error.showUsage ? usage("portolan", COMMANDS) : ""}`);
    return error.exitCode;
  }
  if (flags.help) {
    process.stdout.write(usage("portolan", COMMANDS));
    return printing.end(0);
  }
  if (flags.version) {
    process.stdout.write(banner());
    return printing.end(0);
  }
  let registry: PluginRegistry;
  try {
    registry = flags.listPlugins
      ? await completeRegistry(flags, flags.conf)
      : await pluginRegistry(flags, corefilePath(flags.conf));
  } catch (error) {
    if (!(error instanceof FlagError || error instanceof PluginListError)) throw error;
    process.stderr.write(
      error instanceof FlagError ? `${error.message}\n` : lastWords(error.message, flags.logFormat),
    );
    return 1;
  }
  if (flags.listPlugins) {
    process.stdout.write(`${pluginLines(registry).join("\n")}\n`);
    return printing.end(0);
  }
  const { serve } = await import("./serve.ts");
  return serve(flags, registry);
}
