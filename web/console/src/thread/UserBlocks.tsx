import { useEffect, useState } from "react";
import type { Block, DocumentBlock, ImageBlock, ToolResultBlock } from "../api/wire";
import { many } from "../words/amounts";
import { Prose } from "./Prose";

const IMAGES = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/** What a user turn is made of. */
export function UserBlocks({ content }: { content: readonly Block[] }) {
  return content.map((block, at) => <UserBlock key={at} block={block} />);
}

function UserBlock({ block: { kind } }: { block: Block }) {
  switch (kind.case) {
    case "text":
      return <Prose text={kind.value.text} />;
    case "image":
      return <Image image={kind.value} />;
    case "document":
      return <Document document={kind.value} />;
    case "toolResult":
      return <ToolResult result={kind.value} />;
    default:
      return null;
  }
}

function ToolResult({ result }: { result: ToolResultBlock }) {
  return (
    <section className={result.isError ? "tool result bad" : "tool result"} aria-label="Tool result">
      <header>
        <span className="tool-mark">{result.isError ? "failed" : "result"}</span> <span className="hint">{result.toolUseId}</span>
      </header>
      <UserBlocks content={result.content} />
    </section>
  );
}

/** An image is shown only if the turn has it in itself: nothing is fetched from an address that somebody wrote. */
function Image({ image }: { image: ImageBlock }) {
  const data = image.source.case === "data" ? image.source.value : undefined;
  const address = useBlob(data, IMAGES.includes(image.mediaType) ? image.mediaType : "");
  if (image.source.case === "url") return <Elsewhere words="Image" url={image.source.value} />;
  if (!address) return <p className="hint">An image of type {image.mediaType}</p>;
  return (
    <a href={address} target="_blank" rel="noreferrer" className="thumbnail">
      <img src={address} alt={`Image, ${image.mediaType}, ${many(data?.length ?? 0, "byte")}`} />
    </a>
  );
}

function Document({ document }: { document: DocumentBlock }) {
  const data = document.source.case === "data" ? document.source.value : undefined;
  // As bytes without a type, so that the browser saves it and opens nothing in the console's name.
  const address = useBlob(data, "application/octet-stream");
  const title = document.title || "Document";
  if (document.source.case === "url") return <Elsewhere words={title} url={document.source.value} />;
  return (
    <p className="attachment">
      {address ? (
        <a href={address} download={title.replace(/[/\\]/g, " ")}>
          {title}
        </a>
      ) : (
        title
      )}{" "}
      <span className="hint">
        {document.mediaType}, {many(data?.length ?? 0, "byte")}
      </span>
    </p>
  );
}

function Elsewhere({ words, url }: { words: string; url: string }) {
  if (!url.startsWith("https://")) return <p className="hint">{words}, at an address that is not shown</p>;
  return (
    <p className="attachment">
      {words}:{" "}
      <a href={url} target="_blank" rel="noreferrer noopener">
        {url}
      </a>
    </p>
  );
}

function useBlob(data: Uint8Array | undefined, type: string): string {
  const [address, setAddress] = useState("");
  useEffect(() => {
    if (!data || !type) return;
    const made = URL.createObjectURL(new Blob([data.slice()], { type }));
    setAddress(made);
    return () => {
      URL.revokeObjectURL(made);
      setAddress("");
    };
  }, [data, type]);
  return address;
}
