/**
 * A gateway in its own process, to be killed. It sends its port, then accepts `{arm: n}`: the process ends by SIGKILL
 * just before its n-th command to Redis from then on; and `{schedules: true}`: it looks at the schedules that are due. It
 * runs the build; gateway-process.ts bundles and starts it.
 */
import { Redis } from "ioredis";
import { startGateway } from "../../build/gateway/gateway.js";
import { createLog } from "../../build/telemetry/log.js";

let armed = 0;
const send = Redis.prototype.sendCommand;
Redis.prototype.sendCommand = function (...args) {
  if (armed > 0 && this.options.connectionName === "errand:commands") {
    armed -= 1;
    if (armed === 0) process.kill(process.pid, "SIGKILL");
  }
  return send.apply(this, args);
};
process.on("message", (message) => {
  if (typeof message === "object" && message !== null && "arm" in message) armed = Number(message.arm);
  if ("arm" in Object(message)) process.send?.("armed");
});
process.on("message", async (message) => {
  if (typeof message !== "object" || message === null || !("schedules" in message)) return;
  await gateway.broker.schedules.tick();
  process.send?.("looked");
});
process.on("disconnect", () => process.exit(0));

const options = JSON.parse(process.argv[2] ?? "{}");
const settings = {
  redis: options.redis,
  host: "127.0.0.1",
  port: options.port,
  operatorToken: options.operatorToken,
  shards: options.shards,
  retentionMs: 3_600_000,
  maxBodyBytes: 1_048_576,
  allowedOrigins: [],
  log: createLog(options.logLevel, (line) => process.stderr.write(line)),
  ...(options.callbackAllow && { callbackAllow: options.callbackAllow }),
};
const gateway = await startGateway(settings, { sweepEveryMs: options.sweepEveryMs });
process.on("SIGTERM", () => void gateway.close().then(() => process.exit(0)));
process.send?.({ port: gateway.port });
