import { useState, useSyncExternalStore } from "react";
import { identity, onIdentity } from "../api/identity";
import { ConversationList } from "../conversations/ConversationList";
import { HeldPage } from "../operator/HeldPage";
import { LedgerPage } from "../operator/LedgerPage";
import { RetriesPage } from "../operator/RetriesPage";
import { WorkersPage } from "../operator/WorkersPage";
import { ConversationPage } from "../thread/ConversationPage";
import { Help } from "./Help";
import { IdentityPage } from "./IdentityPage";
import { Mishap } from "./Mishap";
import { Page } from "./Page";
import { useReach } from "./reach";
import { Link, navigate, parse, paths, useHref, type Route } from "./router";
import { useShortcuts } from "./shortcuts";

const PLACES = [
  { name: "Conversations", to: paths.conversations(), pages: ["conversations", "conversation"] },
  { name: "Held", to: paths.held(), pages: ["held"] },
  { name: "Ledger", to: paths.ledger(), pages: ["ledger"] },
  { name: "Retries", to: paths.retries(), pages: ["retries"] },
  { name: "Workers", to: paths.workers(), pages: ["workers"] },
];

export function Shell() {
  const route = parse(useHref());
  const who = useSyncExternalStore(onIdentity, identity);
  const reach = useReach();
  const [help, setHelp] = useState(false);
  useShortcuts({
    "?": () => setHelp(true),
    "g c": () => navigate(paths.conversations()),
    "g h": () => navigate(paths.held()),
    "g l": () => navigate(paths.ledger()),
    "g r": () => navigate(paths.retries()),
    "g w": () => navigate(paths.workers()),
  });
  const talking = route.page === "conversations" || route.page === "conversation";
  return (
    <>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="bar">
        <Link to={paths.conversations()} className="mark" aria-label="turnd, conversations">
          turnd
        </Link>
        <nav aria-label="Places">
          {PLACES.map((place) => (
            <Link key={place.name} to={place.to} aria-current={place.pages.includes(route.page) ? "page" : undefined}>
              {place.name}
            </Link>
          ))}
        </nav>
        <div className="bar-end">
          <Link to={paths.identity()} aria-current={route.page === "identity" ? "page" : undefined}>
            {who.key ? "Key" : who.tenant || "No key"}
          </Link>
          <button type="button" className="quiet" aria-label="Keyboard shortcuts" onClick={() => setHelp(true)}>
            ?
          </button>
        </div>
      </header>
      {reach !== "reached" && (
        <p className="reach" role="status">
          {reach === "offline" ? "There is no network." : "The server can't be reached."} What is shown may be old.
        </p>
      )}
      <div className={talking ? `body at-${route.page}` : "body"} key={route.page === "identity" ? "identity" : `${who.key} ${who.tenant} ${who.subject}`}>
        {talking && <ConversationList current={route.page === "conversation" ? route.conversationId : ""} />}
        <main id="content" tabIndex={-1}>
          <Mishap key={route.page === "conversation" ? route.conversationId : route.page}>
            <Content route={route} />
          </Mishap>
        </main>
      </div>
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

function Content({ route }: { route: Route }) {
  switch (route.page) {
    case "conversations":
      return <p className="nothing">Choose a conversation, or begin a new one.</p>;
    case "conversation":
      return <ConversationPage key={route.conversationId} conversationId={route.conversationId} at={route.at} />;
    case "held":
      return <HeldPage />;
    case "ledger":
      return <LedgerPage conversationId={route.conversationId} turnId={route.turnId} />;
    case "retries":
      return <RetriesPage range={route.range} />;
    case "workers":
      return <WorkersPage />;
    case "identity":
      return <IdentityPage />;
    case "missing":
      return (
        <Page title="Nothing here">
          <p>
            There is no such page. <Link to={paths.conversations()}>Conversations</Link>
          </p>
        </Page>
      );
  }
}
