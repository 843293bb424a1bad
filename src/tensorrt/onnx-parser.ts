/** OnnxParser: reads models in the ONNX format into networks. */
import { resolve } from 'node:path';

import { checkOptions, checkPath, checkText, invalid } from '../ground/arguments.js';
import { isBytes } from '../ground/other-realms.js';
import { NativeHandle } from './native-handle.js';
import { NetworkDefinition } from './network-definition.js';

/**
 * Reads models in the ONNX format into a network. IParser
 *
 * @example
 * ```ts no-run
 * await using builder = await Builder.create();
 * await using network = await builder.createNetwork();
 * const parser = await OnnxParser.create(network);
 * console.log(await parser.supportsOperator('Conv')); // true
 * await parser.parseFile('model.onnx');
 * ```
 */
export class OnnxParser extends NativeHandle {
  private readonly network: NetworkDefinition;

  private constructor(network: NetworkDefinition, number: number) {
    super(network.thread, number, 'an ONNX parser', network);
    this.network = network;
  }

  /**
   * Creates a parser into a network. The data that it has read stays in memory until the network is
   * closed, since the network's weights refer to it. createNvOnnxParser
   */
  static async create(network: NetworkDefinition): Promise<OnnxParser> {
    if (!(network instanceof NetworkDefinition))
      throw invalid('network', 'a NetworkDefinition', network);
    return new OnnxParser(network, await network.thread.call('createParser', network.handle));
  }

  /**
   * Parses a model's bytes. IParser::parse
   *
   * @param options `path`: the path of the file, for weights in files beside it
   * @throws OnnxParserError with all messages of the parser, each with its node
   */
  async parse(
    model: Uint8Array,
    options: { readonly path?: string } = {},
  ): Promise<NetworkDefinition> {
    if (!isBytes(model)) throw invalid('model', "a Uint8Array of an ONNX file's bytes", model);
    checkOptions('options', options, ['path']);
    if (options.path !== undefined) checkPath('options.path', options.path);
    await this.thread.call(
      'parse',
      this.handle,
      model,
      options.path === undefined ? undefined : resolve(options.path),
    );
    return this.network;
  }

  /**
   * Parses a file, with the files beside it that it names. IParser::parseFromFile
   *
   * @throws OnnxParserError with all messages of the parser
   */
  async parseFile(path: string): Promise<NetworkDefinition> {
    checkPath('path', path, 'the path of an ONNX file');
    await this.thread.call('parseFile', this.handle, resolve(path));
    return this.network;
  }

  /**
   * Returns whether the parser has an operator; it may still refuse a node of it. supportsOperator
   */
  supportsOperator(name: string): Promise<boolean> {
    checkText('name', name);
    return this.thread.call('supportsOperator', this.handle, name);
  }
}
