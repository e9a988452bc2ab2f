import assert from "node:assert/strict";
import { test } from "node:test";
import { type FolderReader, withConfFiles } from "./conf-files.ts";
import { DnsmasqArgumentError } from "./dnsmasq-arguments.ts";

const TEXTS: Readonly<Record<string, string>> = {
  "/etc/dnsmasq.conf":
    '# servers\nserver=/a.example/1.2.3.4\n  no-resolv # none\n\nlog-facility="-"\nconf-dir=/etc/d,.bak\n',
  "/etc/d/one.conf": "cache-size = 10\n",
  "/etc/d/two.bak": "bogus\n",
  "/etc/d/.hidden": "bogus\n",
  "/etc/loop": "conf-file=/etc/loop\n",
  "/etc/bad": "ok\n= 5\n",
};

const reader: FolderReader = {
  async readText(path) {
    const text = TEXTS[path];
    if (text === undefined) throw new Error("no such file");
    return text;
  },
  async list(folder) {
    const names = Object.keys(TEXTS).filter((path) => path.startsWith(`${folder}/`));
    if (names.length === 0) throw new Error("no such folder");
    return names.map((path) => path.slice(folder.length + 1));
  },
};

test("files are replaced by the options in them", async () => {
  const expected = ["--server=/a.example/1.2.3.4", "--no-resolv", "--log-facility=-", "--cache-size=10"];
  for (const words of [
    ["--conf-file=/etc/dnsmasq.conf"],
    ["--conf-file", "/etc/dnsmasq.conf"],
    ["-C", "/etc/dnsmasq.conf"],
    ["-C/etc/dnsmasq.conf"],
  ])
    assert.deepEqual(await withConfFiles(["-k", ...words, "--no-hosts"], reader), [
      "-k",
      ...expected,
      "--no-hosts",
    ]);
  for (const words of [["-C"], ["--conf-file"], ["--conf-file="]])
    assert.deepEqual(await withConfFiles(["--pid-file", ...words, "--no-hosts"], reader), [
      "--pid-file",
      "--no-hosts",
    ]);
  assert.deepEqual(await withConfFiles(["--conf-dir=/etc/d,*.conf"], reader), ["--cache-size=10"]);
});

for (const [words, message] of [
  [["--conf-file=/nowhere"], /cannot read \/nowhere: no such file/],
  [["--conf-dir=/nowhere"], /cannot access directory \/nowhere: no such folder/],
  [["--conf-file=/etc/loop"], /nested too deeply at \/etc\/loop/],
  [["--conf-file=/etc/bad"], /bad option at line 2 of \/etc\/bad/],
] as const) {
  test(`refuses ${words.join(" ")}`, () =>
    assert.rejects(
      withConfFiles(words, reader),
      (error) => error instanceof DnsmasqArgumentError && message.test(error.message),
    ));
}
