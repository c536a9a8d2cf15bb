// What a gateway of the benchmarks imports from the build; bench.slow.test.ts bundles it.
export { startGateway } from "../../build/gateway/gateway.js";
export { createLog } from "../../build/telemetry/log.js";
