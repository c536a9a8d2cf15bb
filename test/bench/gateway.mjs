// What a gateway of the benchmarks imports from the build; bench.test.ts bundles it.
export { startGateway } from "../../build/app.js";
export { createLog } from "../../build/telemetry/log.js";
