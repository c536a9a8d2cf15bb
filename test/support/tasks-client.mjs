/**
 * The client of the Tasks extension, on a connected client of the SDK. Limit: its own typings do not compile here, so
 * it is wrapped in what tasks-client.d.mts says.
 */
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";

export function taskSession(client, { dispatch, protocolVersion, onInput }) {
  return createTaskSessionFromClient(client, {
    endpointId: "errand-test",
    rawDispatch: async (request, options) => {
      const answer = await dispatch(request, options?.signal);
      return answer.error
        ? { kind: "error", error: answer.error }
        : { kind: "result", result: answer.result };
    },
    v2RequestFraming: {
      protocolVersion,
      clientInfo: { name: "tasks-test", version: "1" },
      clientCapabilities: { elicitation: { form: {} } },
    },
    onInputRequest: onInput,
  });
}
