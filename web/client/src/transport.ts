import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
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
    for (const [name, value] of Object.entries(own ?? {})) set(request.header, name, value);
    const bearer = await token?.();
    if (bearer !== undefined && bearer !== "") set(request.header, "Authorization", `Bearer ${bearer}`);
    return next(request);
  };
}

/** A header that can't be sent is the caller's error, which no link mends. Its value may be a secret, so it is told nowhere. */
function set(headers: Headers, name: string, value: string): void {
  try {
    headers.set(name, value);
  } catch {
    throw new ConnectError(`the header ${JSON.stringify(name)} has a name or value that can't be sent; look for line breaks`, Code.InvalidArgument);
  }
}
