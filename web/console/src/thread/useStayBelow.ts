import { useCallback, useEffect, useLayoutEffect, useRef, type RefObject } from "react";

const NEAR_PX = 80;

/**
 * Keeps the end of a thread in sight as it grows, for as long as its reader is there. Who has scrolled up to read is left
 * alone.
 */
export function useStayBelow(of: string, ready: boolean): { mark: RefObject<HTMLDivElement | null>; stay: () => void } {
  const mark = useRef<HTMLDivElement>(null);
  const below = useRef(true);
  const scroller = () => mark.current?.closest("main") ?? null;

  useEffect(() => {
    below.current = true;
    const box = scroller();
    if (!box) return;
    const moved = () => {
      below.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
    };
    box.addEventListener("scroll", moved, { passive: true });
    return () => box.removeEventListener("scroll", moved);
  }, [of]);
  useLayoutEffect(() => {
    const box = scroller();
    const thread = mark.current?.parentElement;
    if (!ready || !box || !thread) return;
    const follow = () => {
      if (below.current) box.scrollTop = box.scrollHeight;
    };
    follow();
    const sizes = new ResizeObserver(follow);
    sizes.observe(thread);
    return () => sizes.disconnect();
  }, [of, ready]);

  return { mark, stay: useCallback(() => void (below.current = true), []) };
}
