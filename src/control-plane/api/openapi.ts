/** The OpenAPI 3.1 document, from the same schemas that check bodies and shape answers. */
import { plural } from '../../lib/text/plural.ts'
import { errors } from '../../model/errors.ts'
import { modules } from '../../modules/forms.ts'
import { policyWords } from '../../modules/policy/policy-words.ts'
import { documented } from '../resources/index.ts'
import type { Resource } from '../resources/resource.ts'
import { exampleOf } from './openapi-examples.ts'
import { answerSchema, bodySchema, type PublishedSchema } from './openapi-schemas.ts'
import { type ApiRoute, isWrite, sentence } from './routes.ts'

type OpenApiDocument = Readonly<Record<string, unknown>>

/** Describes `routes` as a document. */
export function openApiDocument(
  routes: readonly ApiRoute[],
  { version, sshHostKey }: { readonly version: string; readonly sshHostKey: string },
): OpenApiDocument {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Postern management API',
      version,
      description: `Manages API keys, credentials, agent sessions, tunnels, edges and their modules. Every call sends \`Authorization: Bearer <API key>\` and \`Service-Version: 2\`. The SSH gateway shows the host key \`${sshHostKey}\`.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    // The order in which modules act on a request; responses pass them in the opposite order.
    'x-modules': modules.map(({ name }) => name),
    // What policies can be written with, for editors.
    'x-policy': policyWords(),
    servers: [{ url: '/' }],
    security: [{ api_key: [] }],
    tags: documented.flatMap((each) => [each, ...(each.otherName ? [each.otherName] : [])]).map(tag),
    paths: paths(routes),
    components: {
      securitySchemes: {
        api_key: { type: 'http', scheme: 'bearer', description: 'The `token` of an API key.' },
      },
      parameters: { version: versionParameter, prefer: preferParameter },
      headers: { in_force: inForceHeader },
      schemas: {
        error: errorSchema,
        ...Object.fromEntries(documented.map(({ kind, view }) => [kind, answerSchema(view)])),
      },
      responses: { error: { description: 'What went wrong, and what to do.', content: json(ref('schemas', 'error')) } },
    },
  }
}

const versionParameter = {
  name: 'Service-Version',
  in: 'header',
  required: true,
  schema: { type: 'string', enum: ['2'] },
  description: 'The version of this API.',
}

const preferParameter = {
  name: 'Prefer',
  in: 'header',
  schema: { type: 'string', enum: ['respond-async'] },
  description: 'Answers at once, without waiting until the change is in force.',
}

const inForceHeader = {
  schema: { type: 'string', enum: ['yes', 'pending'] },
  description: '`yes`: what was written is in force at this node. `pending`: it is stored, and will be in a moment.',
}

const errorSchema = {
  type: 'object',
  required: ['error_code', 'status_code', 'msg', 'details'],
  additionalProperties: false,
  properties: {
    error_code: {
      type: 'string',
      description: 'A stable name.',
      enum: Object.keys(errors).map((code) => `ERR_${code}`),
    },
    status_code: { type: 'integer', description: 'The HTTP status.' },
    msg: { type: 'string', description: 'What is wrong, and what to do.' },
    details: {
      type: 'object',
      additionalProperties: { type: 'string' },
      properties: {
        operation_id: { type: 'string', description: 'Finds this call in the log of the server.' },
        field: { type: 'string', description: 'Path of the field at fault, such as `hostports[0]`; absent for none.' },
      },
    },
  },
}

function paths(routes: readonly ApiRoute[]): Record<string, Record<string, unknown>> {
  const all: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    const shared = { parameters: [ref('parameters', 'version'), ...pathParameters(route)] }
    all[route.path] = { ...(all[route.path] ?? shared), [route.method.toLowerCase()]: operation(route) }
  }
  return all
}

function operation(route: ApiRoute) {
  const { operation, summary, action, resource, status, body, response, command, events } = route
  const parameters = [
    ...(action === 'list' ? pageParameters(resource) : []),
    ...filterParameters(route),
    ...(isWrite(route) ? [ref('parameters', 'prefer')] : []),
  ]
  return {
    operationId: operation,
    summary,
    tags: [title(resource.noun)],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: bodyOf(route, bodySchema(body)) }),
    ...(command && { requestBody: { required: false, content: json({ type: 'object' }) } }),
    responses: {
      [status]: {
        description: events ?? outcomes[status],
        ...(isWrite(route) && { headers: { 'Service-In-Force': ref('headers', 'in_force') } }),
        ...(response && { content: json(answerOf(route, response)) }),
        ...(events !== undefined && { content: { 'text/event-stream': { schema: { type: 'string' } } } }),
      },
      '4XX': ref('responses', 'error'),
      default: ref('responses', 'error'),
    },
  }
}

function answerOf({ resource, action }: ApiRoute, response: NonNullable<ApiRoute['response']>): PublishedSchema {
  const one = ref('schemas', resource.kind)
  if (response === resource.view) return one
  const schema = answerSchema(response)
  if (action !== 'list') return schema
  const { properties } = schema as { readonly properties: Readonly<Record<string, PublishedSchema>> }
  const key = resource.listKey ?? ''
  return { ...schema, properties: { ...properties, [key]: { ...properties[key], items: one } } }
}

const outcomes = { 200: 'Done.', 201: 'Created.', 204: 'Done; the answer has no body.' } as const

function pathParameters({ path, resource }: ApiRoute) {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
    description:
      name === 'id' ? `Id of the ${resource.noun}: \`${resource.prefix}…\`.` : 'Id of the resource that it belongs to.',
  }))
}

function pageParameters({ noun, prefix }: Resource) {
  return [
    {
      name: 'limit',
      in: 'query',
      schema: { type: 'integer', minimum: 1, maximum: 100, default: 100 },
      description: 'The most entries to return; a page of large ones ends before, with a `next_page_uri`.',
    },
    {
      name: 'before_id',
      in: 'query',
      schema: { type: 'string' },
      description: `Only ${plural(noun)} created before this id: \`${prefix}…\`.`,
    },
  ]
}

function filterParameters({ filters = {} }: ApiRoute) {
  return Object.entries(filters).map(([name, schema]) => {
    const { description, ...rest } = answerSchema(schema)
    return { name, in: 'query', schema: rest, description }
  })
}

/** `API key` to `API keys`, `tunnel group backend` to `Tunnel group backends`. */
function title(noun: string): string {
  return sentence(plural(noun))
}

function tag({ noun, about }: Pick<Resource, 'noun' | 'about'>) {
  return { name: title(noun), description: about }
}

function bodyOf(route: ApiRoute, schema: PublishedSchema) {
  return { required: schema.required !== undefined, content: json(schema, exampleOf(route)) }
}

function json(schema: PublishedSchema, example?: unknown) {
  return { 'application/json': { schema, ...(example !== undefined && { example }) } }
}

function ref(section: string, name: string) {
  return { $ref: `#/components/${section}/${name}` }
}
