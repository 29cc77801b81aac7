/** The agent's page as `npm run page` built it; the plain page if it was not built, as in a program that embeds an agent. */
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { packageFile } from '../../lib/files/package-file.ts'
import type { InspectorFile, InspectorPage } from './local-api.ts'

/**
 * The page may run its own script and styles and talk to this agent. No markup from a string, no frame around it, nothing
 * from anywhere else.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Reads all files: they are few and small, and an agent that updates itself may find others there later. */
export async function readBuiltPage(folder = packageFile('built/agent-page')): Promise<InspectorPage> {
  const files = new Map<string, InspectorFile>()
  const add = async (path: string, type: string, name: string): Promise<void> =>
    void files.set(path, { type, bytes: await readFile(join(folder, name)), policy: POLICY })
  try {
    await add('/', 'text/html; charset=utf-8', 'index.html')
    for (const name of await readdir(join(folder, 'page'))) {
      const type = types[extname(name)]
      if (type !== undefined) await add(`/page/${name}`, type, join('page', name))
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return plainPage
    throw error
  }
  return (path) => files.get(path)
}

/** What a browser sees at the inspector without the built page: links to the API. */
const folders: readonly (readonly [path: string, about: string])[] = [
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
${folders.map(([path, about]) => `<li><a href="${path}">${path}</a>: ${about}</li>`).join('\n')}
</ul>
`

const file = {
  type: 'text/html; charset=utf-8',
  bytes: Buffer.from(html),
  policy: "default-src 'none'; frame-ancestors 'none'",
}

export const plainPage: InspectorPage = (path) => (path === '/' ? file : undefined)
