import { Dialog } from "./Dialog";
import { enableShortcuts, SHORTCUTS, useShortcutsEnabled } from "./shortcuts";

export function Help({ onClose }: { onClose: () => void }) {
  const enabled = useShortcutsEnabled();
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <table className="keys">
        <tbody>
          {SHORTCUTS.map(([keys, does]) => (
            <tr key={keys}>
              <th scope="row">
                {keys.split(" ").map((key, at) => key && <kbd key={at}>{key}</kbd>)}
              </th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <label className="check">
        <input type="checkbox" checked={enabled} onChange={(event) => enableShortcuts(event.target.checked)} /> Single keys do
        this
      </label>
    </Dialog>
  );
}
