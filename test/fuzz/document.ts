/** The operations of a running platform, read from its own `/openapi.json`, with what checks their answers. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** A schema as the document has it, as far as values are made from it. */
export interface DocumentSchema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, DocumentSchema>>
  readonly required?: readonly string[]
  readonly items?: DocumentSchema
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly 'x-max-bytes'?: number
}

export interface Operation {
  readonly name: string
  readonly method: string
  /** With parameters as `{id}`. */
  readonly path: string
  /** Prefix of the id that each parameter of the path takes. */
  readonly prefixes: Readonly<Record<string, string>>
  readonly body: DocumentSchema | undefined
  /** Prefix of the ids that a list holds; undefined when it is none. */
  readonly listed: string | undefined
  /** The one status of success. */
  readonly status: number
  /** Checks the body of a success; undefined when it has none. */
  readonly answer: ValidateFunction | undefined
}

interface Parameter {
  readonly name?: string
  readonly in?: string
  readonly description?: string
}

interface Described {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: DocumentSchema } } }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>
}

interface PathItem {
  readonly parameters: readonly Parameter[]
  readonly [method: string]: unknown
}

export async function readDocument(url: string): Promise<readonly Operation[]> {
  const response = await fetch(new URL('/openapi.json', url))
  const document = (await response.json()) as { paths: Record<string, PathItem> }
  const ajv = new Ajv2020({ strict: false, ownProperties: true })
  ajv.addSchema(document, 'api')
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => method !== 'parameters')
      // All but the parameters are operations.
      .map(([method, described]) => read(ajv, path, method, described as Described, item.parameters)),
  )
}

function read(
  ajv: Ajv2020,
  path: string,
  method: string,
  described: Described,
  shared: readonly Parameter[],
): Operation {
  const [status = ''] = Object.keys(described.responses).filter((each) => each !== 'default')
  const steps = ['paths', path, method, 'responses', status, 'content', 'application/json', 'schema']
  const pointer = steps.map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
  return {
    name: described.operationId,
    method: method.toUpperCase(),
    path,
    prefixes: Object.fromEntries(
      shared.filter((each) => each.in === 'path').map((each) => [each.name, prefixOf(each)]),
    ),
    body: described.requestBody?.content['application/json'].schema,
    listed: described.parameters?.filter(({ name }) => name === 'before_id').map(prefixOf)[0],
    status: Number(status),
    answer: described.responses[status]?.content?.['application/json']
      ? ajv.compile({ $ref: `api#/${pointer}` })
      : undefined,
  }
}

/** The document says the prefix in the words about the parameter; the one parent in a path is an HTTPS edge. */
function prefixOf({ name, description = '' }: Parameter): string {
  return name === 'edge_id' ? 'edghts_' : (/`(\w+_)…`/.exec(description)?.[1] ?? '')
}
