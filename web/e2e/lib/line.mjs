// A line between the browser and the service that can be cut: the browser's own emulation of a lost network refuses what is
// asked for from then on, and leaves streams that are open.
import { connect, createServer } from "node:net";

/** Passes on what comes to its own address. */
export async function startLine(server) {
  const { hostname, port } = new URL(server.url);
  const sockets = new Set();
  const line = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.pipe(near);
  });
  await new Promise((resolve) => line.listen(0, "127.0.0.1", resolve));
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    url: `http://127.0.0.1:${line.address().port}`,
    /** Breaks every connection that there is. New ones can be made. */
    cut,
    stop: () => {
      cut();
      return new Promise((resolve) => line.close(resolve));
    },
  };
}
