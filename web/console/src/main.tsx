import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Shell } from "./app/Shell";
import { combineKeys } from "./app/shortcuts";
import "./console.css";

combineKeys();
const place = document.getElementById("console");
if (place) {
  createRoot(place).render(
    <StrictMode>
      <Shell />
    </StrictMode>,
  );
}
