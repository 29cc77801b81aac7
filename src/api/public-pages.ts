/** The pages that need no key: health, readiness, the OpenAPI document and the docs made from it. */
import type { FastifyInstance } from 'fastify'
import { openApiDocument } from './openapi.ts'
import type { Route } from './routes.ts'

export interface PublicPages {
  readonly version: string
  /** Whether the server can serve, and where it listens. */
  readonly readiness: () => Promise<{ readonly isReady: boolean; readonly addresses: Readonly<Record<string, string>> }>
}

declare module 'fastify' {
  interface FastifyContextConfig {
    isPublic?: boolean
  }
}

const open = { config: { isPublic: true } }

/** The docs page may run its own script and styles and talk to this server; nothing from anywhere else. */
const DOCS_POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

export async function mountPublic(app: FastifyInstance, pages: PublicPages, routes: readonly Route[]): Promise<void> {
  app.get('/healthz', open, async (_request, reply) => reply.send({ status: 'ok' }))

  app.get('/readyz', open, async (_request, reply) => {
    const { isReady, addresses } = await pages.readiness()
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ready' : 'not ready', addresses })
  })

  // Made once: the registries do not change while the server runs.
  const document = JSON.stringify(openApiDocument(routes, pages.version))
  app.get('/openapi.json', open, async (_request, reply) => reply.type('application/json').send(document))

  app.addHook('onRoute', (route) => {
    // Everything the docs page serves, its script included, is public too.
    if (route.url.startsWith('/docs')) route.config = { ...route.config, isPublic: true }
  })
  app.addHook('onSend', async (request, reply) => {
    if (request.routeOptions.url?.startsWith('/docs')) reply.header('content-security-policy', DOCS_POLICY)
  })
  const { default: reference } = await import('@scalar/fastify-api-reference')
  await app.register(reference, {
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
}
