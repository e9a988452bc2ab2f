// Loaded by Node before the tests of a plugin (`--import`), to no other end than this:
import { providePortolanImports } from "../../server/configuration/external-modules.ts";

providePortolanImports();
