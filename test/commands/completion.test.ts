/** `portolan completion`, in the shells themselves. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { runPortolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

type Context = Parameters<typeof makeTree>[0];

const scripts = new Map<string, Promise<string>>();

async function scriptFor(shell: string): Promise<string> {
  const { code, output, errors } = await runPortolan(["completion", shell]);
  assert.deepEqual([code, errors], [0, ""]);
  return output;
}

/** A folder with some files and the script of the shell. */
async function folderWith(t: Context, shell: string): Promise<string> {
  const script = scripts.get(shell) ?? scriptFor(shell);
  scripts.set(shell, script);
  return makeTree(t, { Corefile: "", "etc/Corefile.one": "", "a b": "", script: await script });
}

/** Words on the command line, and some of their completions; an empty list means none. */
const CASES: readonly [typed: string, offered: readonly string[], not?: readonly string[]][] = [
  ["portolan ch", ["check"]],
  ["portolan -plugin-", ["-plugin-cfg", "-plugin-timeout"], ["-plugins"]],
  ["portolan check -s", ["-strict"]],
  ["portolan check -format sa", ["sarif"]],
  ["portolan check -format ", ["human", "json", "sarif", "github"]],
  ["portolan -conf Coref", ["Corefile"]],
  ["portolan check etc/Cor", ["etc/Corefile.one"]],
  ["portolan help kub", ["kubernetes"]],
  ["portolan explain www.example AA", ["AAAA"]],
  ["portolan plugin ", ["new", "test"]],
  ["portolan completion ", ["bash", "fish", "zsh"]],
];

describe("bash", { skip: skipWithout("bash") }, () => {
  const complete = `source ./script
COMP_LINE=$1
read -ra COMP_WORDS <<<"\${COMP_LINE//=/ = }"
[[ $COMP_LINE == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
$(complete -p portolan | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
printf '%s\\n' "\${COMPREPLY[@]}"
`;
  const more: typeof CASES = [
    ["portolan --plugin-", ["--plugin-cfg", "--plugin-timeout"]],
    ["portolan check --format=ju", [""], ["junit"]],
    ["portolan test --format=ju", ["junit"]],
    ["portolan check a", ["a b"]],
    ["portolan explain ", [""]],
    ["portolan -quiet ch", [""], ["check"]],
  ];
  for (const [typed, offered, not = []] of [...CASES, ...more]) {
    test(JSON.stringify(typed), async (t) => {
      const cwd = await folderWith(t, "bash");
      const { code, output, errors } = await run("bash", ["--norc", "-c", complete, "bash", typed], { cwd });
      assert.deepEqual([code, errors], [0, ""]);
      const lines = output.replace(/\n$/, "").split("\n");
      for (const word of offered) assert.ok(lines.includes(word), `${word} is not in ${lines.join(", ")}`);
      for (const word of not) assert.ok(!lines.includes(word), word);
    });
  }
});

describe("fish", { skip: skipWithout("fish") }, () => {
  for (const [typed, offered, not = []] of CASES) {
    test(JSON.stringify(typed), async (t) => {
      const cwd = await folderWith(t, "fish");
      const command = 'source ./script; complete -C "$argv[1]"';
      const env = { HOME: cwd, TERM: "dumb" };
      const { code, output } = await run("fish", ["--no-config", "-c", command, typed], { cwd, env });
      assert.equal(code, 0);
      const words = output.split("\n").map((line) => line.split("\t")[0]);
      for (const word of offered) assert.ok(words.includes(word), `${word} is not in ${words.join(", ")}`);
      for (const word of not) assert.ok(!words.includes(word), word);
    });
  }
});

describe("zsh", { skip: skipWithout("zsh") }, () => {
  // zsh completes in a terminal alone, and shows nothing there while more is typed: what it adds to its matches goes into a file.
  const inside = `PROMPT=; autoload -Uz compinit; compinit -D; source ./script
record() {
  if [[ \${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
    local -a matches
    builtin compadd -A matches "$@"
    print -rl -- $matches >>offered
  fi
  builtin compadd "$@"
}
tell() {
  compadd() { record "$@" }
  _main_complete
  unfunction compadd
  print -r fin''ished
}
zle -C tell complete-word tell
bindkey '^X' tell
print -r rea''dy
`;
  const complete = `zmodload zsh/zpty
zpty shell zsh -f -i
listen() { zpty -r -m shell REPLY "*$1*" }
zpty -w shell "source ./inside"
listen ready
zpty -w -n shell "$1"$'\\C-x'
listen finished
zpty -d shell
`;
  for (const [typed, offered, not = []] of CASES) {
    test(JSON.stringify(typed), async (t) => {
      const cwd = await folderWith(t, "zsh");
      writeFileSync(join(cwd, "inside"), inside);
      const env = { HOME: cwd, TERM: "dumb" };
      const { output, errors } = await run("zsh", ["-f", "-c", complete, "zsh", typed], { cwd, env });
      const lines = readFileSync(join(cwd, "offered"), "utf8").split("\n");
      for (const word of offered) {
        // Of a path it is the last part that is added.
        const part = basename(word);
        assert.ok(lines.includes(part), `${part} is not in ${lines.join(", ")}\n${output}${errors}`);
      }
      for (const word of not) assert.ok(!lines.includes(word), word);
    });
  }
  test("the script has no syntax errors", async (t) => {
    const cwd = await folderWith(t, "zsh");
    assert.deepEqual((await run("zsh", ["-n", "script"], { cwd })).errors, "");
  });
});

test("a shell that is none of these", async () => {
  for (const args of [[], ["csh"], ["bash", "zsh"]]) {
    const { code, output, errors } = await runPortolan(["completion", ...args]);
    assert.deepEqual([code, output], [2, ""]);
    assert.match(errors, /^Usage: portolan completion bash\|zsh\|fish/);
  }
  assert.equal((await runPortolan(["completion", "-h"])).code, 0);
});
