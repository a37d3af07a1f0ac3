"""Common English words, each of which tokenizers know as one or two tokens and any voice can say."""

from __future__ import annotations

COMMON = """
able about above across act add after again against age ago agree air all almost alone along already also
always among animal answer any apple area arm around arrive art ask away baby back ball bank base bear
beautiful because become bed before begin behind believe below best better between big bird black blood blue
boat body book both bottom box boy bread break bridge bright bring brother brown build busy but buy call
came can car care carry catch cause center certain chair chance change check child choose church circle city
class clean clear climb close cloud coat cold color come common complete cook cool copper corn corner cost
could count country course cover cross cry cup current cut dance dark day deal decide deep desk did
different dinner direct discover doctor does dog door down draw dream dress drink drive drop dry during each
ear early earth east easy eat edge egg eight either electric end energy engine enjoy enough enter even
evening ever every example eye face fact fall family far farm fast father feel few field fight fill final
find fine finger finish fire first fish five floor flow flower fly follow food foot force forest form
forward four free fresh friend from front fruit full game garden gave gentle girl give glad glass gold gone
good grass great green ground group grow guess half hand happen happy hard hat have head hear heart heat
heavy help here high hill hold home hope horse hot hour house huge human hundred hurry idea inside iron
island job join jump just keep kind king kitchen knee know lake land language large last late laugh lead
leaf learn least leave left letter level lift light line lion listen little live long look lose lot loud
love low lunch machine made make many map mark market matter mean measure meet middle might mile milk mind
minute money moon more morning most mother mountain mouth move much music must name near need never new next
night nine noise north nose note nothing notice number ocean offer office often old once only open orange
order other our outside over own page paint paper park part party pass past path pay people perhaps person
picture piece place plain plan plant play please point poor possible power present pretty price print
problem pull push put question quick quiet quite race rain reach read ready real record red remember rest
rich ride right ring rise river road rock roll room root round row rule run safe said sail salt same sand
save school sea season second seed seem sell send seven several shape share sharp ship shirt shoe shop short
should shout show side silver simple since sing sister sit six size skin sky sleep slow small smile snow
soft soil some son song soon sound south space speak special spell spend spoke spring square stand star
start station stay step still stone stood stop store story straight strange stream street strong student
such sudden sugar summer sun sure surface swim table tail take talk tall teach team tell ten test thank
thick thin thing think third thousand three through throw time tiny today together told took tool top touch
toward town track trade train travel tree trip true try turn twelve twenty under until use usual valley very
village visit voice wait walk wall want warm wash watch water wave way wear weather week weight well west
wheel where while white whole wide wife wild will wind window winter wish with woman wonder wood word work
world would write wrong yard year yellow yes young
"""
WORDS = tuple(COMMON.split())
