import { Component, type ReactNode } from "react";

/** What is shown if a page of the console fails by a fault of its own: the rest of it stays, and other pages can be gone to. */
export class Mishap extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError() {
    return { broken: true };
  }

  override render() {
    if (!this.state.broken) return this.props.children;
    return (
      <div className="page">
        <div className="failed" role="alert">
          <strong>This page of the console has failed</strong>
          <p>Nothing was changed by it. Load it again, or go elsewhere.</p>
        </div>
        <div className="row">
          <button type="button" onClick={() => window.location.reload()}>
            Load it again
          </button>
        </div>
      </div>
    );
  }
}
