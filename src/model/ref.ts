/** References as the API shows them. */
import { Type } from '../lib/shape/type.ts'

export interface Ref {
  readonly id: string
  readonly uri: string
}

/** Makes the reference for an id. */
export type Link = (id: string) => Ref

export const RefSchema = Type.Object(
  {
    id: Type.String({ description: 'Resource identifier.' }),
    uri: Type.String({ description: 'Address of the resource.' }),
  },
  { additionalProperties: false, description: 'A reference to another resource.' },
)

export const RefListSchema = Type.Array(RefSchema)
