/** The pages that need no key: health, readiness, the OpenAPI document and the docs made from it. */
import type { FastifyInstance } from 'fastify'
import { mountDocs } from './docs-page.ts'
import { type KeptPage, keepPage, sendPage } from './kept-page.ts'
import { openApiDocument } from './openapi.ts'
import type { ApiRoute } from './routes.ts'

/** Whether the server can serve, and where. */
interface Readiness {
  readonly isReady: boolean
  readonly addresses: Readonly<Record<string, string>>
}

export interface PublicPages {
  readonly version: string
  /** The fingerprint of the SSH gateway's host key, shown so that people can check it. */
  readonly sshHostKey: string
  readonly readiness: (asked: { readonly forVisitors: boolean }) => Promise<Readiness>
}

declare module 'fastify' {
  interface FastifyContextConfig {
    isPublic?: boolean
    /** Whether it is a page for browsers, which the IP restriction of type `dashboard` guards. */
    isPage?: boolean
  }
}

const open = { config: { isPublic: true } } as const
const page = { config: { isPublic: true, isPage: true } } as const

export function mountPublic(app: FastifyInstance, pages: PublicPages, routes: readonly ApiRoute[]): void {
  app.get('/healthz', open, async (_request, reply) => reply.send({ status: 'ok' }))

  app.get<{ Querystring: { for?: unknown } }>('/readyz', open, async ({ query }, reply) => {
    const { isReady, addresses } = await pages.readiness({ forVisitors: query.for === 'visitors' })
    const status = isReady ? 'ready' : 'not ready'
    return reply.code(isReady ? 200 : 503).send({ status, addresses, ssh_host_key: pages.sshHostKey })
  })

  // Made once, on first use: the registries do not change while the server runs.
  let document: Promise<KeptPage> | undefined
  app.get('/openapi.json', page, async (request, reply) => {
    document ??= keepDocument(routes, pages)
    return sendPage(request, reply, await document)
  })

  mountDocs(app, page)
}

function keepDocument(routes: readonly ApiRoute[], pages: PublicPages): Promise<KeptPage> {
  const body = Buffer.from(JSON.stringify(openApiDocument(routes, pages)))
  return keepPage({ body, type: 'application/json', cacheControl: 'no-cache' })
}
