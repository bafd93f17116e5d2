import { useEffect, useRef, useState, type RefObject } from "react";
import { percent } from "../words/amounts";

export interface Bar {
  name: string;
  share: number;
  /** How many of how many, for who looks closer. */
  note: string;
  /** Whether there was anything to have a share of. */
  any: boolean;
}

const HEIGHT = 190;
const LEFT = 48;
const RIGHT = 12;
const BOTTOM = 26;
const TOP = 14;

/** Shares over time as bars. The table below it says the same to those who don't see it. */
export function Chart({ title, bars, tone }: { title: string; bars: Bar[]; tone: string }) {
  const top = ceiling(Math.max(...bars.map((bar) => bar.share), 0));
  const [width, place] = useWidth();
  const step = (width - LEFT - RIGHT) / Math.max(1, bars.length);
  const y = (share: number) => TOP + (HEIGHT - BOTTOM - TOP) * (1 - share / top);
  const every = Math.ceil(64 / step);
  return (
    <figure className="chart">
      <figcaption>{title}</figcaption>
      <svg ref={place} height={HEIGHT} role="img" aria-label={`${title}: ${percent(bars.at(-1)?.share ?? 0)} in the last window`}>
        {[0, top / 2, top].map((mark) => (
          <g key={mark} className="grid">
            <line x1={LEFT} x2={width - RIGHT} y1={y(mark)} y2={y(mark)} />
            <text x={LEFT - 8} y={y(mark) + 4} textAnchor="end">
              {percent(mark)}
            </text>
          </g>
        ))}
        {bars.map((bar, at) => (
          <g key={bar.name}>
            <rect className={bar.any ? `bar-${tone}` : "bar-none"} x={LEFT + at * step + 1} width={Math.max(1, step - 2)} {...extent(bar, y)} rx={1.5}>
              <title>{`${bar.name}: ${percent(bar.share)}, ${bar.note}`}</title>
            </rect>
            {at % every === 0 && (
              <text x={LEFT + at * step + 1} y={HEIGHT - 8}>
                {bar.name}
              </text>
            )}
          </g>
        ))}
      </svg>
    </figure>
  );
}

// A window without any call gets a thin mark, so that it is told from one without a retry.
function extent(bar: Bar, y: (share: number) => number): { y: number; height: number } {
  const floor = y(0);
  const height = bar.any ? Math.max(2, floor - y(bar.share)) : 1;
  return { y: floor - height, height };
}

function ceiling(share: number): number {
  return [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((step) => share <= step) ?? 1;
}

/** The width that a picture has on the page, so that it is drawn to measure and its letters stay as large as others. */
function useWidth(): [number, RefObject<SVGSVGElement | null>] {
  const place = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(720);
  useEffect(() => {
    const picture = place.current;
    if (!picture) return;
    const sizes = new ResizeObserver(() => setWidth(Math.max(240, picture.clientWidth)));
    sizes.observe(picture);
    return () => sizes.disconnect();
  }, []);
  return [width, place];
}
