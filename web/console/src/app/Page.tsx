import { useEffect, useRef, type ReactNode } from "react";

/** A page with its heading, which gets the focus when the page is come to. */
export function Page({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    document.title = `${title} · turnd`;
  }, [title]);
  return (
    <section className="page">
      <header className="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {actions && <div className="row">{actions}</div>}
      </header>
      {children}
    </section>
  );
}
