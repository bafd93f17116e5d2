import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import type { TurndOptions } from "./options.js";

/** The transport that options ask for: Connect over fetch, in protobuf's own format. */
export function transportOf(options: TurndOptions): Transport {
  if (options.transport !== undefined) return options.transport;
  return createConnectTransport({
    baseUrl: options.baseUrl ?? "/",
    useBinaryFormat: true,
    interceptors: [withHeaders(options)],
    ...(options.fetch && { fetch: options.fetch }),
  });
}

function withHeaders({ token, headers }: TurndOptions): Interceptor {
  return (next) => async (request) => {
    const own = typeof headers === "function" ? headers() : headers;
    for (const [name, value] of Object.entries(own ?? {})) request.header.set(name, value);
    const bearer = await token?.();
    if (bearer !== undefined && bearer !== "") request.header.set("Authorization", `Bearer ${bearer}`);
    return next(request);
  };
}
