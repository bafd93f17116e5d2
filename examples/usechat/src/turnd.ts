import { createTurnd } from "@turnd/client";
import { TurndChatTransport, type TurndUIMessage } from "@turnd/client/ai";

export const turnd = createTurnd({ baseUrl: "/" });
export const transport = new TurndChatTransport<TurndUIMessage>({ turnd });
