/**
 * Packages that become a part of the program, which `npm start` therefore installs: some of many small files and needed at the start,
 * some for a single command. Each with the text of its licence, and with the file to read in place of that of `exports`.
 * @type {ReadonlyMap<string, { main?: string, licence: string }>}
 */
export const BUNDLED = new Map([
  ["yaml", { main: "browser/index.js", licence: "yaml/LICENSE" }],
  // It comes without the text of its licence, which is also that of this project.
  ["@bufbuild/protobuf", { licence: "../LICENSE" }],
  // The patches of `portolan fmt -diff`, in the form that patch(1) and `git apply` read.
  ["diff", { licence: "diff/LICENSE" }],
  // `portolan language-server`: the protocol of editors, from the project that defines it.
  ...[
    "vscode-jsonrpc",
    "vscode-languageserver",
    "vscode-languageserver-protocol",
    "vscode-languageserver-textdocument",
    "vscode-languageserver-types",
  ].map((name) => /** @type {const} */ ([name, { licence: `${name}/License.txt` }])),
]);
