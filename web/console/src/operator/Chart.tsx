import { percent } from "../words/amounts";

export interface Bar {
  name: string;
  share: number;
  /** How many of how many, for who looks closer. */
  note: string;
  /** Whether there was anything to have a share of. */
  any: boolean;
}

const WIDTH = 720;
const HEIGHT = 150;
const LEFT = 44;
const BOTTOM = 22;
const TOP = 8;

/** Shares over time as bars. The table below it says the same to those who don't see it. */
export function Chart({ title, bars, tone }: { title: string; bars: Bar[]; tone: string }) {
  const top = ceiling(Math.max(...bars.map((bar) => bar.share), 0));
  const step = (WIDTH - LEFT) / Math.max(1, bars.length);
  const y = (share: number) => TOP + (HEIGHT - BOTTOM - TOP) * (1 - share / top);
  const every = Math.ceil(bars.length / 6);
  return (
    <figure className="chart">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${title}: ${percent(bars.at(-1)?.share ?? 0)} in the last window`}>
        {[0, top / 2, top].map((mark) => (
          <g key={mark} className="grid">
            <line x1={LEFT} x2={WIDTH} y1={y(mark)} y2={y(mark)} />
            <text x={LEFT - 6} y={y(mark) + 4} textAnchor="end">
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
              <text x={LEFT + at * step + 1} y={HEIGHT - 6}>
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
