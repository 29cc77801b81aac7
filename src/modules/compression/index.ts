/** The `compression` module: responses go to the visitor compressed. */
import { Type } from 'typebox'
import { enabled } from '../fields.ts'
import type { Module } from '../module.ts'

export const compression: Module = {
  name: 'compression',
  about: 'Compresses responses that are not compressed yet, when the visitor accepts it.',
  at: { route: Type.Object({ enabled }, { additionalProperties: false }) },
  needs: () => 'http',
}
