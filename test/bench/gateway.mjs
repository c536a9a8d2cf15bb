// What a gateway of the benchmarks imports from the build; bench.test.ts bundles it.
export { startGateway } from "../../dist/app.js";
export { createLog } from "../../dist/telemetry/log.js";
