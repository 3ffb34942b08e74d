"""Reads and writes the collection of tools with the official client of Qdrant.

    qdrant_peer.py URL KEY

The collection was made by Capstan, or is made here. Prints what the client understood, as JSON.
"""

import json
import sys
import warnings

from qdrant_client import QdrantClient, models

warnings.filterwarnings("error")
URL, KEY = sys.argv[1:]
NAME = "capstan_tools"
ID = "11111111-2222-4333-8444-555555555555"
# Warnings about the version or the key over plain HTTP would be errors here; loopback has no TLS.
warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
client = QdrantClient(url=URL, api_key=KEY)

if not client.collection_exists(NAME):
    client.create_collection(
        NAME, vectors_config=models.VectorParams(size=27, distance=models.Distance.COSINE)
    )
info = client.get_collection(NAME)
size = info.config.params.vectors.size

every, page = client.scroll(NAME, limit=100, with_payload=True, with_vectors=True)
before = [point.payload for point in every]

point = models.PointStruct(id=ID, vector=[1.0] + [0.0] * (size - 1), payload={"hash": "x", "seen": 1})
status = client.upsert(NAME, points=[point], wait=True).status
retrieved = client.retrieve(NAME, ids=[ID], with_vectors=True)
mine = models.Filter(must=[models.FieldCondition(key="hash", match=models.MatchAny(any=["x"]))])
old = models.Filter(must=[models.FieldCondition(key="seen", range=models.Range(lt=2))])
only = models.Filter(must=[models.HasIdCondition(has_id=[ID])])
hits = client.query_points(NAME, query=retrieved[0].vector, query_filter=only, limit=5).points
counted = client.count(NAME, count_filter=mine).count
client.set_payload(NAME, payload={"seen": 3}, points=[ID])
late = client.count(NAME, count_filter=old).count
client.delete(NAME, points_selector=models.FilterSelector(filter=mine))
after = client.count(NAME).count

try:
    client.upsert(NAME, points=[models.PointStruct(id=1, vector=[1.0], payload={})])
    refused = False
except Exception as error:
    refused = "Vector dimension error" in str(error)
try:
    QdrantClient(url=URL, api_key="wrong", check_compatibility=False).get_collections()
    locked = False
except Exception as error:
    locked = "401" in str(error)

json.dump(
    {
        "size": size,
        "distance": info.config.params.vectors.distance,
        "indexes": sorted(info.payload_schema),
        "before": before,
        "page": page,
        "status": status,
        "score": round(hits[0].score, 3),
        "hits": len(hits),
        "counted": counted,
        "late": late,
        "after": after,
        "refused": refused,
        "locked": locked,
    },
    sys.stdout,
)
