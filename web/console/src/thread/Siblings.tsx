/** ‹ 2/3 ›: which of several siblings is shown. With only one there is nothing to choose. */
export function Siblings({ what, at, of, onStep }: { what: string; at: number; of: number; onStep: (by: 1 | -1) => void }) {
  if (of < 2) return null;
  return (
    <span className="siblings" role="group" aria-label={what}>
      <button type="button" className="quiet" aria-label={`Previous: ${what}`} disabled={at <= 0} onClick={() => onStep(-1)}>
        ‹
      </button>
      <span aria-label={`${at + 1} of ${of}`}>
        {at + 1}/{of}
      </span>
      <button type="button" className="quiet" aria-label={`Next: ${what}`} disabled={at >= of - 1} onClick={() => onStep(1)}>
        ›
      </button>
    </span>
  );
}
