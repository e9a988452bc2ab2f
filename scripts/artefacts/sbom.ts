/** Bills of materials: what an artefact is made of and which of its files come from where (CycloneDX 1.6). */
import { lstatSync, readlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { sha256OfFile } from "./archives.ts";
import type { Component, Stage } from "./components.ts";
import type { Edition } from "./edition.ts";

/** One file of an artefact. A link has a target in place of a hash. */
interface FileFact {
  readonly path: string;
  readonly hash?: string;
  readonly target?: string;
}

/** A part of an artefact with the facts about its files: they outlive the folder that was packed. */
export interface Ingredient extends Omit<Component, "files"> {
  readonly files: readonly FileFact[];
}

/** What folders hold, while they are there. */
export function ingredientsOf(...stages: readonly Stage[]): Ingredient[] {
  return stages.flatMap(({ folder, components }) =>
    components.map((component) => ({
      ...component,
      files: component.files.map((path) => factOf(folder, path)),
    })),
  );
}

function factOf(folder: string, path: string): FileFact {
  const file = join(folder, path);
  if (lstatSync(file).isSymbolicLink()) return { path, target: readlinkSync(file) };
  return { path, hash: sha256OfFile(file) };
}

/**
 * Writes the bill beside an artefact.
 * @param artefact the path of the file that is described
 * @returns the path of the bill
 */
export function writeSbom(edition: Edition, artefact: string, ingredients: readonly Ingredient[]): string {
  const path = `${artefact}.cdx.json`;
  writeFileSync(path, `${JSON.stringify(sbomOf(edition, artefact, ingredients), undefined, 1)}\n`);
  return path;
}

function sbomOf(edition: Edition, artefact: string, ingredients: readonly Ingredient[]): unknown {
  const digest = sha256OfFile(artefact);
  const subject = basename(artefact);
  const { name, license } = edition.manifest;
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    // Of what is described: the same artefact has the same bill.
    serialNumber: `urn:uuid:${digest.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5")}`,
    version: 1,
    metadata: {
      timestamp: new Date(edition.time * 1000).toISOString(),
      component: {
        type: "application",
        "bom-ref": subject,
        name,
        version: edition.version,
        description: subject,
        hashes: [{ alg: "SHA-256", content: digest }],
        licenses: licencesOf(license),
      },
    },
    components: ingredients.map(componentOf),
    dependencies: [{ ref: subject, dependsOn: ingredients.map(refOf) }],
  };
}

function refOf({ name, version }: Ingredient): string {
  return `${name}@${version}`;
}

function componentOf(ingredient: Ingredient): unknown {
  const { type, name, version, purl, licence, files } = ingredient;
  return {
    type,
    "bom-ref": refOf(ingredient),
    name,
    version,
    purl,
    licenses: licencesOf(licence),
    ...(files.length > 0 && {
      components: files.map(({ path, hash, target }) => ({
        type: "file",
        "bom-ref": `${refOf(ingredient)}/${path}`,
        name: path,
        ...(hash !== undefined && { hashes: [{ alg: "SHA-256", content: hash }] }),
        ...(target !== undefined && { properties: [{ name: "portolan:link", value: target }] }),
      })),
    }),
  };
}

/** @param licence an identifier or an expression of SPDX, or plain words */
function licencesOf(licence: string): unknown[] {
  if (/^[\w.+-]+$/.test(licence)) return [{ license: { id: licence } }];
  return / (OR|AND) /.test(licence) ? [{ expression: licence }] : [{ license: { name: licence } }];
}
