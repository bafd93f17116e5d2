// Drives a headless Chromium. Each scene gets a browser of its own as far as storage goes, and its pages are watched: what a
// page throws, or what its security policy had to forbid, fails the scene.
import { access, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "playwright-core";

const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const quiet = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-default-apps", "--hide-scrollbars",
];

async function installed() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const place of places) {
    try {
      await access(place);
      return place;
    } catch {
      continue;
    }
  }
  throw new Error("there is no Chromium: run make deps");
}

/** Starts the browser. Screenshots go to a folder. */
export async function startBrowser(shots) {
  await mkdir(shots, { recursive: true });
  const browser = await launch({ executablePath: await installed(), headless: true, args: quiet });
  return { browser, shots, stop: () => browser.close() };
}

/** Launches the browser. It may crash at its start, before it has seen a page, which says nothing of what is played. */
async function launch(options, tries = 3) {
  try {
    return await chromium.launch(options);
  } catch (error) {
    if (tries === 1) throw error;
    return launch(options, tries - 1);
  }
}

/** A browser of its own: storage and pages that no other has. */
export async function openContext({ browser, shots }, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, locale: "en-GB", timezoneId: "UTC", ...options });
  context.setDefaultTimeout(15_000);
  const faults = [];
  context.on("page", (page) => {
    page.on("pageerror", (error) => faults.push(`the page threw: ${error.message}`));
    page.on("console", (message) => {
      if (/Content Security Policy|Trusted ?Type/i.test(message.text())) faults.push(message.text());
    });
    page.on("dialog", (dialog) => {
      faults.push(`a dialog was opened: ${dialog.message()}`);
      void dialog.dismiss();
    });
  });
  return {
    context,
    faults,
    open: async (url) => {
      const page = await context.newPage();
      await page.goto(url);
      return page;
    },
    shot: async (page, name) => {
      const path = join(shots, `${name}.png`);
      await page.screenshot({ path, animations: "disabled" });
      return path;
    },
    close: () => context.close(),
  };
}

/** Whether a page is wider than its window. */
export async function sideways(page) {
  return page.evaluate(() => {
    const wide = [...document.querySelectorAll("body *")].filter((e) => {
      const box = e.getBoundingClientRect();
      return box.width > 0 && box.right > window.innerWidth + 1 && !e.closest(".scroll, pre, nav, .unseen, svg, dialog:not([open])");
    });
    return { page: document.documentElement.scrollWidth, window: window.innerWidth, wide: wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 80)) };
  });
}
