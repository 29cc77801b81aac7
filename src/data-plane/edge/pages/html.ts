/** The error page for browsers: self-contained, readable without scripts, in the colours that the reader prefers. */
import { createHash } from 'node:crypto'

interface PageContent {
  readonly status: number
  readonly text: string
  /** The error code, which the reader can report. */
  readonly name: string
  /** The id of the request in the log. */
  readonly requestId?: string | undefined
}

const style = `
:root{color-scheme:light dark;--ground:#f6f5f2;--card:#fff;--ink:#1d1f24;--soft:#5b6068;--line:#e2dfd8;--stone:#8a8378}
@media (prefers-color-scheme:dark){
:root{--ground:#14161a;--card:#1c1f25;--ink:#eceae5;--soft:#a3a7af;--line:#2d3138;--stone:#a79f92}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem;background:var(--ground);color:var(--ink);
font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{width:100%;max-width:32rem;padding:2.5rem;border:1px solid var(--line);border-radius:1rem;background:var(--card)}
svg{display:block;width:3.5rem;height:3.5rem;margin-bottom:1.5rem;color:var(--stone)}
.status{margin:0;font-size:.875rem;letter-spacing:.06em;color:var(--soft)}
h1{margin:.25rem 0 0;font-size:1.5rem;line-height:1.3;font-weight:600;text-wrap:balance}
.hint{margin:1rem 0 0;color:var(--soft)}
.code{margin:2rem 0 0;padding-top:1rem;border-top:1px solid var(--line);font-size:.8125rem;color:var(--soft)}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color:var(--ink);overflow-wrap:anywhere}
`

/** A closed gate in a wall. */
const gate = `<svg viewBox="0 0 48 48" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true">
<path d="M3 44h42M6 44V12h5v4h6v-4h5v4h4v-4h5v4h6v-4h5v32"/><path d="M17 44V31a7 7 0 0 1 14 0v13M24 24v20"/><path d="M21.5 36v2M26.5 36v2"/></svg>`

/** Lets the browser use this page's own style and nothing else. */
export const htmlPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export function htmlPage({ status, text, name, requestId }: PageContent): string {
  const hint = hintFor(status)
  const request = requestId === undefined ? '' : `<br>Request <code>${escapeHtml(requestId)}</code>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${status} · ${escapeHtml(text)}</title>
<style>${style}</style>
</head>
<body>
<main>
${gate}
<p class="status">${status}</p>
<h1>${escapeHtml(text)}</h1>
${hint === '' ? '' : `<p class="hint">${escapeHtml(hint)}</p>\n`}<p class="code">Error code <code>${escapeHtml(name)}</code>${request}</p>
</main>
</body>
</html>
`
}

function hintFor(status: number): string {
  if (status === 401 || status === 403) return 'If you should have access, contact the owner of this site.'
  if (status === 404) return 'Check the address. If it is right, the owner of this site can tell you more.'
  if (status >= 500) return 'Try again in a moment. The owner of this site can find this request in the log.'
  return ''
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
