import { changed } from "../app/changes";
import { navigate, paths } from "../app/router";
import { turnd, type ReplySnapshot } from "../api/turnd";
import { AbandonReason, type Block, OnBusy, type Reply, ReplyStatus, type UserTurn } from "../api/wire";
import type { LiveThread } from "./useLive";

/** What can be done in a conversation. Each throws what the server says against it. */
export interface Actions {
  send: (message: { draft: string; content: Block[]; onBusy: OnBusy; parent?: string }) => void;
  stop: (turnId: string) => Promise<void>;
  regenerate: (turn: UserTurn, reply: Pick<Reply, "replyId">, snapshot?: ReplySnapshot) => Promise<void>;
  again: (turnId: string) => void;
  use: (reply: Reply) => Promise<void>;
  goTo: (turnId: string) => Promise<void>;
  replies: (turnId: string) => Promise<Reply[]>;
}

export function actionsOf(conversationId: string, live: LiveThread, reload: () => void): Actions {
  const refresh = () => {
    reload();
    changed(conversationId);
  };
  const toCurrent = () => {
    navigate(paths.conversation(conversationId), true);
    refresh();
  };
  const use = async (reply: Reply) => {
    await turnd().select(conversationId, reply.replyId);
    toCurrent();
  };
  const replies = async (turnId: string) => (await turnd().turn({ conversationId, turnId })).replies;
  return {
    use,
    replies,
    send: ({ draft, content, onBusy, parent }) => {
      const reply = turnd().send({ conversationId, content, draft, onBusy, ...(parent && { parent }) });
      live.listen(reply.turnId, reply, content);
    },
    stop: async (turnId) => {
      await turnd().cancel({ conversationId, turnId });
      refresh();
    },
    regenerate: async (turn, { replyId }, snapshot) => {
      const generation = Math.max(turn.generation, snapshot?.generation ?? 0);
      const made = await turnd().regenerate({ conversationId, replyId, generation });
      if (made.reply) live.listen(turn.turnId, turnd().follow({ conversationId, replyId: made.reply.replyId }));
      toCurrent();
    },
    again: (turnId) => {
      const source = live.live.get(turnId)?.source;
      if (source) live.listen(turnId, source.again());
    },
    goTo: async (turnId) => {
      const found = await replies(turnId);
      const whole = found.findLast(selectable);
      if (whole) {
        try {
          return await use(whole);
        } catch {
          // Who may only read, or comes while a reply runs, still gets to see that branch.
        }
      }
      navigate(paths.conversation(conversationId, found.at(-1)?.replyId ?? turnId));
    },
  };
}

/** Whether a reply was whole once, so that the conversation can go on below it. */
export function selectable(reply: Reply): boolean {
  return reply.status === ReplyStatus.COMPLETE || (reply.status === ReplyStatus.ABANDONED && reply.abandonReason === AbandonReason.SUPERSEDED);
}
