/** The page at the bare address of the API when the dashboard was not built: says what this server is, with links. */
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Whether a browser opened the bare address. Programs send a key or do not ask for HTML, and get the usual answer. */
export function wantsFrontPage({ method, url, headers }: FastifyRequest): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  if (!/^\/+(\?|$)/.test(url) || headers.authorization !== undefined) return false
  return /\btext\/html\b/i.test(headers.accept ?? '')
}

export function sendFrontPage(reply: FastifyReply): FastifyReply {
  return reply
    .headers({
      'content-security-policy': POLICY,
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
      vary: 'accept, authorization, origin',
    })
    .type('text/html; charset=utf-8')
    .send(PAGE)
}

const STYLE = `
:root{color-scheme:light dark;--ground:#f6f5f2;--card:#fff;--ink:#1d1f24;--soft:#5b6068;--line:#e2dfd8}
@media (prefers-color-scheme:dark){:root{--ground:#14161a;--card:#1c1f25;--ink:#eceae5;--soft:#a3a7af;--line:#2d3138}}
*{box-sizing:border-box}
body{margin:0;padding:1.5rem;background:var(--ground);color:var(--ink);font:1rem/1.6 system-ui,sans-serif}
main{max-width:46rem;margin:4rem auto;padding:2.5rem;border:1px solid var(--line);border-radius:1rem;background:var(--card)}
h1{margin:0;font-size:1.5rem;line-height:1.3}
h2{margin:2rem 0 .5rem;font-size:1rem}
p,li{color:var(--soft)}
a{color:inherit}
pre{margin:0;padding:1rem;overflow-x:auto;border:1px solid var(--line);border-radius:.5rem;font-size:.8125rem}
`

/** Nothing on the page depends on the request, and the browser may use its style and nothing else. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Postern · management API</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>This is the management API of a Postern server</h1>
<p>Programs call it with an API key. Tunnels have addresses of their own, which the agent shows; they are not served here.
The dashboard that belongs here was not built: in a clone of Postern, <code>npm ci</code> or <code>npm run page</code> builds it.</p>
<h2>Where to go</h2>
<ul>
<li><a href="/docs">/docs</a>: every call of this API, to read and to try</li>
<li><a href="/openapi.json">/openapi.json</a>: the same for programs</li>
<li><a href="/readyz">/readyz</a>: whether the server is ready, and where agents and visitors connect</li>
</ul>
<h2>First steps</h2>
<p>The first start of the server showed an API key and an authtoken. In a clone of Postern, <code>postern</code> is
<code>npx postern</code>.</p>
<pre>postern login                 # server, authtoken and CA, kept for the agents of this machine
postern http 3000             # a public address for what listens on port 3000
export POSTERN_API_KEY=…      # the API key
postern api                   # every resource of this API</pre>
<p>Lost the key? <code>postern admin create-key</code> makes another, on the machine of the server. README.md and the folder
<code>docs</code> of Postern tell the rest.</p>
</main>
</body>
</html>
`
