/**
 * Keeps Fastify from loading its schema compilers, a hundred files that take a twentieth of a second at every start. No
 * route gives Fastify a schema, since `readBody` and `readQuery` check what comes in.
 */
import type { FastifyServerOptions } from 'fastify'

export const withoutSchemas: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: { buildValidator: refuse, buildSerializer: refuse },
}

function refuse(): never {
  throw new Error('schemas of routes are not for Fastify')
}
