/** What a browser sees at the inspector without the built page: links to the API. */
import type { InspectorPage } from './local-api.ts'

const places: readonly (readonly [path: string, about: string])[] = [
  ['/api/tunnels', 'the tunnels of this agent'],
  ['/api/exchanges', 'the latest requests and responses'],
  ['/api/exchanges/stream', 'the same, as a live stream'],
  ['/api/requests/http', 'the same, in the format of the official agent'],
  ['/api/status', 'the status of the agent'],
]

const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Postern agent</title>
<h1>Postern agent</h1>
<ul>
${places.map(([path, about]) => `<li><a href="${path}">${path}</a>: ${about}</li>`).join('\n')}
</ul>
`

const file = {
  type: 'text/html; charset=utf-8',
  bytes: Buffer.from(html),
  policy: "default-src 'none'; frame-ancestors 'none'",
}

export const plainPage: InspectorPage = (path) => (path === '/' ? file : undefined)
