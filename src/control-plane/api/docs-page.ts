/** The page at `/docs`, to read about and try the API; it loads nothing from other servers. */
import Fastify, { type FastifyInstance, type LightMyRequestResponse } from 'fastify'
import { type KeptPage, keepPage, sendPage } from './kept-page.ts'

/** The page may run its own script and styles and talk to this server; nothing from anywhere else. */
const POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** How many pages are kept. More than there are; the limit keeps made-up paths from filling memory. */
const MAX_KEPT = 16

/** Mounts the page, with `options` on its routes. */
export function mountDocs(app: FastifyInstance, options: { config: { isPublic: true; isPage: true } }): void {
  let made: Promise<FastifyInstance> | undefined
  /** By path. Redirects and errors are not kept. */
  const kept = new Map<string, Promise<KeptPage | LightMyRequestResponse>>()
  const render = async (path: string): Promise<KeptPage | LightMyRequestResponse> => {
    made ??= make()
    const answer = await (await made).inject({ method: 'GET', url: path })
    const { statusCode, headers, rawPayload: body } = answer
    if (statusCode !== 200) return answer
    const type = String(headers['content-type'] ?? 'application/octet-stream')
    // The name of the script has no version, so browsers must check for changes now and then.
    const cacheControl = type.includes('javascript') ? 'public, max-age=3600' : 'no-cache'
    return keepPage({ body, type, cacheControl })
  }
  const serve = async (path: string): Promise<KeptPage | LightMyRequestResponse> => {
    const known = kept.get(path)
    if (known) return known
    const rendering = render(path)
    // Stored before it is ready, so that requests at the same time share it.
    if (kept.size < MAX_KEPT) kept.set(path, rendering)
    const forget = (): boolean => kept.get(path) === rendering && kept.delete(path)
    try {
      const page = await rendering
      if ('statusCode' in page) forget()
      return page
    } catch (error) {
      forget()
      made = undefined
      throw error
    }
  }
  for (const path of ['/docs', '/docs/*']) {
    app.get(path, options, async (request, reply) => {
      const page = await serve(new URL(request.url, 'http://localhost').pathname)
      reply.header('content-security-policy', POLICY)
      if (!('statusCode' in page)) return sendPage(request, reply, page)
      return reply.code(page.statusCode).headers(page.headers).send(page.rawPayload)
    })
  }
}

/** A separate app, made on first use: loading its 4 MB of script would slow down every start. */
async function make(): Promise<FastifyInstance> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const page = Fastify()
  await page.register(reference, {
    routePrefix: '/docs',
    configuration: {
      url: '/openapi.json',
      pageTitle: 'Postern API',
      // These would contact the vendor of the page.
      withDefaultFonts: false,
      telemetry: false,
      hideClientButton: true,
      agent: { disabled: true },
      mcp: { disabled: true },
      showDeveloperTools: 'never',
      persistAuth: false,
    },
  })
  return page
}
