// Preloaded by Node before the tests of a plugin (`--import`), for this purpose alone:
import { providePortolanImports } from "../../server/configuration/external-modules.ts";

providePortolanImports();
