/** The page at `/docs` to read and try the API with; all of it comes from this server. */
import Fastify, { type FastifyInstance } from 'fastify'

/** The page may run its own script and styles and talk to this server; nothing from anywhere else. */
const POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Mounts the page, with `options` on its routes. */
export function mountDocs(app: FastifyInstance, options: { config: { isPublic: true; isPage: true } }): void {
  let made: Promise<FastifyInstance> | undefined
  const serve = async (url: string) => {
    made ??= make()
    return (await made).inject({ method: 'GET', url })
  }
  for (const path of ['/docs', '/docs/*']) {
    app.get(path, options, async (request, reply) => {
      const { statusCode, headers, rawPayload } = await serve(request.url)
      return reply.code(statusCode).headers(headers).header('content-security-policy', POLICY).send(rawPayload)
    })
  }
}

/** An app of its own, made when somebody first looks: its 4 MB of script would slow down every start. */
async function make(): Promise<FastifyInstance> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const page = Fastify()
  await page.register(reference, {
    routePrefix: '/docs',
    configuration: {
      url: '/openapi.json',
      pageTitle: 'Postern API',
      // What is left off would talk to the page's vendor.
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
