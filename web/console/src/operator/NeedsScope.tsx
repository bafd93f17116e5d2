/** Says which scope a page takes. */
export function NeedsScope() {
  return (
    <span className="hint">
      Scope <code>operator</code>
    </span>
  );
}
