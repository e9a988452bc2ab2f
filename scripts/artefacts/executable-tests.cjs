// Part of the single executable: runs tests of plugins in this process, which cannot be started as Node.
const path = require("node:path");
const { pathToFileURL } = require("node:url");

/**
 * @param {string} preload the address of a module that comes first
 * @param {readonly string[]} files
 */
exports.runTests = async (preload, files) => {
  await import(preload);
  for (const file of files) await import(pathToFileURL(path.resolve(file)).href);
};
