/** The files of the dashboard, as `npm run page` built them: read once, compressed on first use, sent from memory. */
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { packageFile } from '../../lib/files/package-file.ts'
import { type KeptContent, type KeptPage, keepPage, sendPage } from './kept-page.ts'

/** The name of a file has a hash of its content, so its content never changes. */
const FOREVER = 'public, max-age=31536000, immutable'

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/**
 * The page may run its own script and styles and talk to this server. No markup from a string, no frame around it,
 * nothing from anywhere else.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

export class PageFiles {
  readonly #contents: ReadonlyMap<string, KeptContent>
  /** Compressed on first use: after most starts of a server nobody visits its page. */
  readonly #kept = new Map<string, Promise<KeptPage>>()

  constructor(contents: ReadonlyMap<string, KeptContent>) {
    this.#contents = contents
  }

  /** Sends a file by its name, or the page itself for `index.html`; undefined when there is none of that name. */
  async send(request: FastifyRequest, reply: FastifyReply, name: string): Promise<FastifyReply | undefined> {
    const content = this.#contents.get(name)
    if (!content) return undefined
    let kept = this.#kept.get(name)
    if (!kept) {
      kept = keepPage(content)
      this.#kept.set(name, kept)
    }
    return sendPage(request, reply.headers(HEADERS), await kept)
  }
}

export const INDEX = 'index.html'

/** Programs that ask for the same address get something else (`front-page.ts`). */
const VARY = 'accept, accept-encoding, authorization, origin'

/** Undefined when the page was not built. */
export async function readPageFiles(folder = packageFile('built/page')): Promise<PageFiles | undefined> {
  const contents = new Map<string, KeptContent>()
  try {
    const index = await readFile(join(folder, INDEX))
    contents.set(INDEX, { body: index, type: 'text/html; charset=utf-8', cacheControl: 'no-cache', vary: VARY })
    for (const name of await readdir(join(folder, 'page'))) {
      const type = types[extname(name)]
      if (type) contents.set(name, { body: await readFile(join(folder, 'page', name)), type, cacheControl: FOREVER })
    }
    return new PageFiles(contents)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
