/** The options of `errand backup`, `errand restore` and `errand migrate` that say where the data of a broker is. */
import { type Command, InvalidArgumentError, Option } from "commander";

/** `--data-dir` wins over ERRAND_REDIS_URL, so both options together would be ambiguous. */
export function addPlaceOptions(command: Command, dataDir: string, redisUrl: string): Command {
  return command
    .addOption(new Option("--data-dir <folder>", dataDir).conflicts("redisUrl").argParser(notEmpty))
    .addOption(new Option("--redis-url <url>", redisUrl).argParser(notEmpty));
}

/** An unset variable of a script must not select the default place. */
export function notEmpty(text: string): string {
  if (text === "") throw new InvalidArgumentError("It is empty.");
  return text;
}
